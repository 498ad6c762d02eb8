# P5b: a starting worker looks at earlier ones of its machine. One whose process is gone is lost at
# once; a living one is never touched, nor one in another pid namespace before its session has ended
# and it missed a beat. Sweeps ignore ends of sessions here, and silence is patient, so nothing else
# finds the dead.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main',
    settings => {
        %PATIENT,
        'pulse.heartbeat_interval' => '1s',
        'pulse.disconnect_grace' => '-1' });
value($node, q{SELECT pulse.set_task('hold', backoff => 'none')});
# The liveness clock begins with the first sweep.
value($node, 'SELECT pulse.sweep()');
my $tasks = Pulse::Tasks->new(
    hold => 'tell holding; wait_at hold',
    stubborn => <<'SH');
if [[ $PULSE_ATTEMPT == 1 ]]; then
    echo $$ >"$gates/first"
    trap '' TERM
    tell began
    while :; do wait_at never; done
fi
if kill -0 "$(<"$gates/first")"; then tell beside; else tell alone; fi
SH
value($node, q{SELECT pulse.set_task('stubborn', backoff => 'none')});

sub start_worker {
    my ($name, %options) = @_;
    return Pulse::Worker->start_registered($node, $name, tasks => $tasks, %options);
}

# A worker that holds a job.
sub start_holder {
    my ($name, %options) = @_;
    my $job = add_job($node, 'hold');
    my $worker = start_worker($name, %options);
    $tasks->wait_for('holding', job => $job);
    return ($worker, $job);
}

# "state|how it was lost"
sub fate {
    my ($worker_id) = @_;
    return value($node, "SELECT w.state, h.lost_cause FROM pulse.worker AS w
        LEFT JOIN pulse.heartbeat AS h ON h.worker_id = w.id WHERE w.id = $worker_id");
}

# The identity of a process of this machine, as a worker registers it.
sub info_of {
    my ($pid, %changed) = @_;
    my $stat = PostgreSQL::Test::Utils::slurp_file("/proc/$pid/stat");
    my %info = (
        boot_id => PostgreSQL::Test::Utils::slurp_file('/proc/sys/kernel/random/boot_id'),
        pid_namespace => readlink '/proc/self/ns/pid',
        pid => $pid,
        process_start => (split / /, $stat =~ s/.*\) //sr)[19],
        hostname => PostgreSQL::Test::Utils::slurp_file('/proc/sys/kernel/hostname'),
        %changed);
    chomp @info{qw(boot_id hostname)};
    return '{' . join(', ', map { qq("$_": "$info{$_}") } sort keys %info) . '}';
}

sub register {
    my ($name, $info) = @_;
    return value($node, "SELECT id FROM pulse.register_worker('$name', NULL, '$info')");
}

subtest 'a worker that was killed is recovered by the next one that starts' => sub {
    my ($sibling, $kept) = start_holder('sibling');
    my ($victim, $job) = start_holder('victim');
    $victim->kill;
    my $next = start_worker('next');
    my $told = $next->wait_for('declared_lost', worker => $victim->id);
    is($told->{jobs}, 1, 'its job is recovered');
    like($told->{reason}, qr/^its process \d+ is gone$/, 'because its process is gone');
    is(fate($victim->id), 'lost|host', 'it is lost by host');
    is(outcomes($node, $job), 'lost', 'the attempt is recorded');
    $tasks->wait_for('holding', job => $job, attempt => 2);
    is(fate($sibling->id), 'alive|', 'its living sibling is not touched');
    is(scalar $next->events('declared_lost'), 1, 'nor anybody else');
    $tasks->open_gate('hold', 2);
    $sibling->wait_for('completed', job => $kept);
    $next->wait_for('completed', job => $job);
    for ($sibling, $next) { $_->signal('TERM'); is($_->wait_exit, 0, 'it drains') }
};

subtest 'a task that ignores SIGTERM is dead before the next attempt starts' => sub {
    my $job = add_job($node, 'stubborn');
    my $victim = start_worker('stubborn victim');
    $tasks->wait_for('began', job => $job);
    $victim->kill;
    my $next = start_worker('stubborn next');
    $next->wait_for('completed', job => $job);
    is(scalar(my @beside = $tasks->told('beside')), 0, 'it does not run beside');
    is(scalar(my @alone = $tasks->told('alone')), 1, 'the next attempt runs alone');
    is(fate($victim->id), 'lost|host', 'the worker was lost by host');
    $next->signal('TERM');
    is($next->wait_exit, 0, 'the next one drains');
};

subtest 'another process under the same pid is not that worker' => sub {
    my $reused = register('reused', info_of($$, process_start => 1));
    my $living = register('living', info_of($$));
    my $without = register('without start', info_of($$, process_start => ''));
    my $next = start_worker('second');
    $next->wait_for('declared_lost', worker => $reused);
    is(fate($reused), 'lost|host', 'who started at another time is gone');
    is(fate($living), 'alive|', 'who started then lives');
    is(fate($without), 'alive|', 'who is not known by his start lives while his pid does');
    value($node, "SELECT pulse.deregister_worker($_)") for $living, $without;
    $next->signal('TERM');
    $next->wait_exit;
};

subtest 'two pid namespaces' => sub {
    my @new = qw(unshare --user --map-current-user --pid --fork --kill-child --mount-proc);
    plan skip_all => 'no pid namespaces: ' . join ' ', @new if system("@new true 2>/dev/null") != 0;
    my ($first, $kept) = start_holder('first', under => \@new);
    my ($victim, $job) = start_holder('dead', under => \@new);
    is( value($node, 'SELECT count(DISTINCT pid_namespace), count(DISTINCT pid)
            FROM pulse.worker WHERE id IN (' . join(',', $first->id, $victim->id) . ')'),
        '2|1', 'both have the same pid in a namespace of their own');
    is(fate($first->id), 'alive|', 'the first one is not touched by the second');
    $victim->kill;
    my $next = start_worker('third', under => \@new);
    # Its second look comes when whoever lost his session must have missed a beat.
    wait_until($node, 'SELECT state = \'lost\' FROM pulse.worker WHERE id = ' . $victim->id,
        'the dead one is lost');
    is(fate($victim->id), 'lost|host', 'the dead one is lost by host');
    is(outcomes($node, $job), 'lost', 'and its job recovered');
    is(fate($first->id), 'alive|', 'the living one is not touched');
    $tasks->wait_for('holding', job => $job, attempt => 2);
    $tasks->open_gate('hold', 2);
    $first->wait_for('completed', job => $kept);
    $next->wait_for('completed', job => $job);
    $_->kill for $first, $next;
};

expect_healthy($node);
done_testing();
