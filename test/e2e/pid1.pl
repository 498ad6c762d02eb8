# The worker as PID 1 of a container with a read-only root and a user that nobody has heard of. What
# other processes there leave behind comes to it and leaves no zombie, while every task beside it
# keeps its exit code.
use strict;
use warnings FATAL => 'all';

use Fcntl qw(O_RDWR);
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Lines;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { USER => 1000810000, CODES => 4 };

my $container = 'unshare -Urmpf --mount-proc';
if (system("$container true 2>/dev/null") != 0) {
    plan skip_all => 'an ordinary user makes no namespaces here';
}

# Each is a task, and an orphan.
my $jobs = $ENV{PULSE_JOBS} // 60;
my $node = start_server('main', settings => { %PATIENT, 'pulse.keep_completed' => '-1' });
my $tasks = Pulse::Tasks->new(
    surroundings => 'tell "$UID,$( (: >/writable) 2>/dev/null && echo writable || echo read-only)"',
    leave => <<'SH');
tail -f /dev/null &
(setsid tail -f /dev/null &)
exit $((PULSE_JOB_ID % 4 * 7))
SH

# Beside the worker runs what `docker exec` would: a shell that leaves children, as many as it is
# told, and waits for none. Each child outlives its parent: a line tells it to end.
my $place = PostgreSQL::Test::Utils::tempdir('container');
my ($counts, $ends) = map {
    mkfifo("$place/$_", 0600) or die "$_: $!\n";
    sysopen my $pipe, "$place/$_", O_RDWR or die "$_: $!\n";
    $pipe;
} qw(counts ends);
my $entry = <<'SH';
mount --bind "$1" "$1" && mount -o remount,bind,ro / || exit
while read -r count; do
    for ((i = 0; i < count; ++i)); do (read -r _ <"$2/ends" &); done
    echo left >>"$2/told"
done <"$2/counts" &
exec unshare --user --map-user="$3" --map-group="$3" "${@:4}"
SH
my $told = Pulse::Lines->new("$place/told");

local $ENV{PGUSER} = getpwuid $<;
my $worker = Pulse::Worker->start_registered($node, 'init', tasks => $tasks, concurrency => 8,
    under => [ split(' ', $container), 'bash', '-c', $entry, 'entry',
        $PostgreSQL::Test::Utils::tmp_check, $place, USER ]);

# The children of a process: [pid, state, command] each.
sub children_of {
    my ($parent) = @_;
    my @children;
    for my $stat (glob '/proc/[0-9]*/stat') {
        open my $file, '<', $stat or next;
        my $text = <$file> // next;
        push @children, [ $1, $3, $2 ] if $text =~ /^(\d+) \((.*)\) (\S) $parent /s;
    }
    return @children;
}

my ($init) = map { $_->[0] } children_of($worker->pid);
END { kill KILL => $init if $init && $worker && !$worker->has_ended }

like(slurp_file("/proc/$init/status"), qr/^NSpid:.*\t1$/m, 'the worker is PID 1');
my $look = add_job($node, 'surroundings');
ok($tasks->wait_for(USER . ',read-only', job => $look),
    'its tasks have its user, and a root that nobody can write');

syswrite $counts, "$jobs\n";
value($node, q{SELECT pulse.set_task('leave', max_attempts => 1)});
my $ids = join ',', add_jobs($node, 'leave', $jobs);
$told->wait_for('orphans', sub { $_[0] eq 'left' });
cmp_ok(scalar(children_of($init)), '>', $jobs, 'the orphans are its children');
syswrite $ends, "\n" x $jobs;
wait_until($node, "SELECT count(*) = $jobs FROM pulse.finished_job WHERE id IN ($ids)",
    'all tasks have ended');
is(value($node, "SELECT count(*) FROM pulse.finished_job WHERE id IN ($ids)
    AND CASE WHEN id % @{[CODES]} = 0 THEN state = 'completed'
        ELSE state = 'failed' AND last_error = 'exited with code ' || id % @{[CODES]} * 7 END"),
    $jobs, 'every exit code is right');

my $end = time + $PostgreSQL::Test::Utils::timeout_default;
my @left;
# All but the shell.
while (1 < (@left = children_of($init))) {
    last if time > $end;
    Pulse::Lines::pause();
}
is(scalar(grep { $_->[1] eq 'Z' } @left), 0, 'there is no zombie');
is(scalar(@left), 1, 'and no other child but the shell');

kill TERM => $init;
is($worker->wait_exit, 0, 'it drains when it is told to stop');
expect_healthy($node);
done_testing();
