# An idle worker costs nothing but its heartbeats and a wait, while the background worker sweeps;
# when that goes, the worker sweeps again.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant BEATS => 30;

my $node = start_server('main', settings => {
    %QUICK,
    'pulse.databases' => 'postgres',
    # Else a background worker that is late by a second makes those who wait sweep.
    'pulse.poll_interval' => '1h',
    log_statement => 'all',
});
$node->wait_for_log(qr/pg_pulse maintenance started in database "postgres"/);

my $worker = Pulse::Worker->start_registered($node, 'idle',
    tasks => Pulse::Tasks->new(unused => 'exit 1'));

# Returns when so many beats were answered.
sub wait_for_beats {
    my ($count) = @_;
    $worker->wait_for('heartbeat', from => $worker->lines->position, count => $count);
    return;
}

$worker->wait_until_idle;
is(value($node, q{SELECT bool_and(setting::bool) FROM pulse.settings
    WHERE name = 'pulse.background_sweeps'}), 't', 'the background worker sweeps');
# A beat that was sent from now on tells it so.
wait_for_beats(2);
# A worker looks twice for other workers of its machine, at its start and a beat and a half later.
$worker->wait_for('host_checked', from => 0, count => 2);

my $from = -s $node->logfile;
wait_for_beats(BEATS + 1);
my %calls;
for my $line (split /\n/, slurp_file($node->logfile, $from)) {
    $calls{$1}++ if $line =~ /pulse-worker idle LOG: .*(?:FROM|CALL|SELECT) pulse\.(\w+)\(/;
}
note join ', ', map { "$_ $calls{$_}" } sort keys %calls;
cmp_ok(delete $calls{heartbeat}, '>=', BEATS, 'it beats');
# A wait ends by itself now and then, and the claim before the next one looks for what told nobody.
my ($waits, $claims) = map { $_ // 0 } delete @calls{qw(wait_for_job claim)};
cmp_ok(abs($claims - $waits), '<=', 1, 'it claims before each wait and at no other time');
is_deeply(\%calls, {}, 'and says nothing else');

$from = -s $node->logfile;
value($node, q{ALTER SYSTEM SET pulse.databases = ''});
$node->reload;
$node->wait_for_log(qr/pulse-worker idle LOG: [^\n]*pulse\.sweep\(/, $from);
pass('it sweeps where nobody else does');

$worker->signal('TERM');
is($worker->wait_exit, 0, 'exit code');
expect_healthy($node);
done_testing();
