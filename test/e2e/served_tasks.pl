# A worker tells the server of tasks and slots that it gains and loses while it lives, so nobody is
# told that no worker serves a task that a worker serves.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::ProgramFile;
use Pulse::ProgramRun;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%QUICK);
run_programs_on($node);

# Due for longer than doctor() allows, and not claimed: the worker is busy.
sub add_late { return add_job($node, $_[0], q{run_at => now() - interval '2 minutes'}) }

sub unserved {
    return value($node, q{SELECT coalesce(string_agg(identifier, ' ' ORDER BY identifier), 'none')
        FROM pulse.unserved});
}

sub findings {
    return value($node, q{SELECT count(*) FROM pulse.doctor() WHERE finding = 'unserved task'});
}

sub shows {
    my ($worker, $what, $name) = @_;
    wait_until($node, "SELECT $what FROM pulse.worker_status WHERE name = '$worker->{name}'",
        $name);
    return pass($name);
}

sub serves {
    my ($worker, $tasks, $name) = @_;
    my $list = join ',', map { "'$_'" } split / /, $tasks;
    return shows($worker, "tasks = ARRAY[$list]", $name);
}

# --- the tasks folder ---

my $tasks = Pulse::Tasks->new(long => 'tell began; wait_at gate');
my $worker = Pulse::Worker->start_registered($node, 'folder', tasks => $tasks);
add_job($node, 'long');
$tasks->wait_for('began');
my $fresh = add_late('fresh');
is(unserved(), 'fresh', 'no worker serves a task that nobody has');
is(findings(), 1, 'and doctor says so');

$tasks->add(fresh => 'tell ran');
$worker->signal('HUP');
serves($worker, 'fresh long', 'SIGHUP gains a task, and the server knows');
is(findings(), 0, 'doctor is silent');
is(value($node, "SELECT blocker FROM pulse.explain_job($fresh) WHERE kind = 'fleet'"), 'full',
    'the job waits for a slot, and for no worker');

# As on a standby that has been promoted, and has not heard of the new task.
$node->safe_psql('postgres', <<'SQL');
UPDATE pulse.worker SET tasks = '{long}';
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pulse-worker%';
SQL
serves($worker, 'fresh long', 'a new session tells the tasks again');

unlink $tasks->folder . '/fresh' or die $!;
$worker->signal('HUP');
serves($worker, 'long', 'SIGHUP loses a task, and the server knows');
is(unserved(), 'fresh', 'so no worker serves the task');
$worker->signal('TERM');
shows($worker, q{status = 'draining'}, 'a worker that drains with a job is known to');
is(value($node, q{SELECT draining FROM pulse_internal.count_workers()}), 1, 'on each page');
$tasks->open_gate('gate');
is($worker->wait_exit, 0, 'exit code');

# --- a machine without a free descriptor ---

# A worker in that state; returns where its log was before SIGHUP, and the way back.
sub hang_up_without_descriptors {
    my ($worker) = @_;
    my $limit_to = sub { system('prlimit', '--pid', $worker->pid, "--nofile=$_[0]:1024") };
    my $from = $worker->lines->position;
    is($limit_to->(5), 0, 'no descriptor is free');
    $worker->signal('HUP');
    return ($from, sub { is($limit_to->(1024), 0, 'descriptors are free again') });
}

my $short = Pulse::Worker->start_registered($node, 'short', tasks => $tasks);
serves($short, 'long', 'a worker serves a task');
my ($from, $relieve) = hang_up_without_descriptors($short);
my $refused = $short->wait_for('folder_refused', from => $from);
like($refused->{reason}, qr/cannot open .*: Too many open files$/, 'the folder cannot be listed');
is($refused->{kept}, 'long', 'the task from before stays');
$tasks->add(fresh => 'tell ran');
$relieve->();
$short->wait_for('tasks', from => $from, names => 'fresh long');
serves($short, 'fresh long', 'the worker lists the folder again by itself');
is($short->drain, 0, 'exit code');

# --- a folder that is away for a moment ---

my $moved = Pulse::Worker->start_registered($node, 'moved', tasks => $tasks);
my $away = $tasks->folder . '.away';
rename $tasks->folder, $away or die $!;
$moved->signal('HUP');
is($moved->wait_for('folder_refused')->{kept}, 'fresh long', 'its tasks from before stay');
rename $away, $tasks->folder or die $!;
my $later = add_job($node, 'fresh');
$moved->wait_for('completed', job => $later);
is($moved->drain, 0, 'and run, once the folder is back');

# --- functions of the database ---

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION count_it(payload json) RETURNS void LANGUAGE sql AS '';
SELECT pulse.set_task('counted', handler => 'count_it(json)');
SQL
my $caller = Pulse::Worker->start_registered($node, 'functions');
serves($caller, 'counted', 'a function is known as a task of the worker');
$node->safe_psql('postgres', q{SELECT pulse.set_task('later', handler => 'count_it(json)')});
serves($caller, 'counted later', 'so is a function that appears later');
$caller->signal('TERM');
is($caller->wait_exit, 0, 'exit code');

$node->safe_psql('postgres', q{SELECT pulse.unset_task('counted'), pulse.unset_task('later')});

# --- programs ---

my $program = Pulse::ProgramFile->new('shop', version => 1, hello => hello(2, mail => {}));
my $server = start_registered($program);
serves($server, 'mail', 'a program serves the tasks of its hello');
shows($server, 'slots = 2', 'in as many slots');
$program->set(version => 2, hello => hello(5, mail => {}, fresh => {}));
$server->signal('HUP');
serves($server, 'fresh mail', 'new code gains a task, and the server knows');
shows($server, 'slots = 5', 'and slots');
is(wait_finished($fresh), 'completed|1|0', 'the job that no worker served is done');
$program->set(version => 3, hello => hello(3, mail => {}, fresh => {}));
$server->signal('HUP');
shows($server, 'slots = 3', 'slots alone change, too');
drain($server);
expect_healthy($node);
done_testing();
