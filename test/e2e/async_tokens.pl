# P2, P16: a token, a worker id or the id of a job, flow or operation is never given out twice, also
# where a session commits asynchronously and the server crashes before that commit is on disk.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

# Nothing but a commit that waits for it brings WAL to the disk.
my $node = start_server('main', settings => {
    %PATIENT,
    synchronous_commit => 'off',
    wal_writer_delay => '10s',
    wal_writer_flush_after => '2GB',
    checkpoint_timeout => '1h',
    autovacuum => 'off',
    # A full page of WAL would wake the process that writes it.
    full_page_writes => 'off',
});

# So many for each kind of number.
my $crashes = $ENV{PULSE_CRASHES} // 3;
my (%tokens, %workers);

# The server crashes when the client has its answers.
sub crash_after {
    my ($ask) = @_;
    my $session = Pulse::Session->new($node);
    $ask->($session);
    kill_server($node);
    $session->quit;
    $node->start;
    return;
}

sub register {
    my ($session) = @_;
    my $worker = $session->query(q{SELECT id FROM pulse.register_worker('one')});
    $workers{$worker}++;
    return $worker;
}

crash_after(\&register) for 1 .. $crashes;
is(scalar keys %workers, $crashes, 'no worker id was given out twice');

for my $round (1 .. $crashes) {
    # More claims than the server logs numbers ahead; their jobs are on disk.
    value($node, q{SET synchronous_commit = on;
        SELECT count(*) FROM pulse.add_jobs(array_fill('(work,,,,,,,)'::pulse.job_spec, '{40}'))});
    crash_after(sub {
        my ($session) = @_;
        my $worker = register($session);
        $tokens{ $session->query("SELECT token FROM pulse.claim($worker)") }++ for 1 .. 40;
    });
}
is(scalar keys %tokens, 40 * $crashes, 'each claim had a token of its own');

my %given;
for my $round (1 .. $crashes) {
    crash_after(sub {
        my ($session) = @_;
        for (1 .. 40) {
            $given{job}{ $session->query(q{SELECT id FROM pulse.add_job('later')}) }++;
            $given{flow}{ $session->query(
                q{SELECT flow_id FROM pulse.add_flow('[{"identifier": "later"}]')}) }++;
            $given{operation}{ $session->query(q{SELECT pulse.note_operation('noted', '{}')}) }++;
        }
    });
}
for my $kind (sort keys %given) {
    is(scalar keys %{ $given{$kind} }, 40 * $crashes, "no id of a $kind was given out twice");
}

# A sweep commits asynchronously, whatever the session says.
value($node, q{SET synchronous_commit = on;
    SELECT name FROM pulse.schedule('each minute', 'later', every => '1 minute')});
my %scheduled;
for my $hours (1 .. 3) {
    crash_after(sub {
        my ($session) = @_;
        $session->query("SET synchronous_commit = on; SET pulse.clock_offset = ${hours}0000");
        $session->query('SELECT pulse.sweep()');
        $scheduled{ $session->query('SELECT last_job_id FROM pulse.schedule') }++;
    });
}
is(scalar keys %scheduled, 3, 'nor that of a job of a schedule');
expect_healthy($node);
done_testing();
