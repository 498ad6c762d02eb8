# A server with the extension, what its tables say, and what must hold at the end of every test.
package Pulse::Server;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use Test::More;

# Before the framework reads it: what does not happen in this time does not happen.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 60 }
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Pulse::DataFolder;
use Pulse::Process;
use Pulse::Psql;

our @EXPORT = qw(server_folder new_server start_server set value wait_until add_job add_jobs
  finished outcomes kill_server expect_healthy %QUICK %PATIENT);

# A death is noticed by silence within two or three seconds.
our %QUICK = (
    'pulse.heartbeat_interval' => '200ms',
    'pulse.sweep_interval' => '200ms',
    'pulse.sweep_threshold' => '2s',
    'pulse.disconnect_grace' => '200ms',
    'pulse.keep_completed' => '-1',
);

# Nobody is lost by silence, and nobody sweeps by the clock, also where a test takes minutes: only
# what wakes somebody is quick.
our %PATIENT = (
    %QUICK,
    'pulse.sweep_interval' => '600s',
    'pulse.sweep_threshold' => '1200s',
);

my $crash_marks = qr/was terminated by signal|PANIC:|TRAP:/;
# What the log calls a backend, before 18 and from then on.
our $server_process = qr/(?:server process|client backend)/;

# Where the server under test has its files: `bindir`, `pkglibdir`.
sub server_folder {
    my ($what) = @_;
    my ($folder) = run_command([ 'pg_config', "--$what" ]);
    return $folder;
}

# Initialised, not started. `preload => 0`: without shared_preload_libraries.
sub new_server {
    my ($name, %options) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);
    _init($node, allows_streaming => $options{streaming} // 0);
    my %settings = (
        max_connections => 40,
        max_prepared_transactions => 5,
        client_connection_check_interval => '1s',
        %{ $options{settings} // {} });
    $settings{shared_preload_libraries} = '' if !($options{preload} // 1);
    $node->append_conf('postgresql.conf',
        join "\n", map { "$_ = '$settings{$_}'" } sort keys %settings);
    return $node;
}

# The framework writes the settings; its initdb is a copy.
sub _init {
    my ($node, %options) = @_;
    my $run = \&PostgreSQL::Test::Utils::system_or_bail;
    no warnings 'redefine';
    local *PostgreSQL::Test::Utils::system_or_bail = sub {
        return $_[0] eq 'initdb' ? Pulse::DataFolder::copy_template($node->data_dir) : $run->(@_);
    };
    $node->init(%options);
    return;
}

sub start_server {
    my $node = new_server(@_);
    $node->start;
    value($node, 'CREATE EXTENSION pg_pulse');
    return $node;
}

# Changes settings of a running server.
sub set {
    my ($node, %settings) = @_;
    my @names = sort keys %settings;
    value($node, join ";\n", map { "ALTER SYSTEM SET $_ = '$settings{$_}'" } @names);
    $node->reload;
    wait_until($node, 'SELECT ' . join(' AND ',
        map { "current_setting('$_')::interval = '$settings{$_}'::interval" } @names), "@names");
    return;
}

sub value {
    my ($node, $query, $database) = @_;
    return Pulse::Psql::answer($node, $database // 'postgres', $query);
}

# Waits until the query answers t; `what` is said when it never does.
sub wait_until {
    my ($node, $query, $what, $database) = @_;
    Pulse::Psql::becomes_true($node, $database // 'postgres', $query) or die "never: $what\n";
    return;
}

# Adds a job of this task; `more`: further arguments of add_job, as SQL. Returns its id.
sub add_job {
    my ($node, $task, $more, $database) = @_;
    my $arguments = join ', ', "'$task'", $more // ();
    return value($node, "SELECT id FROM pulse.add_job($arguments)", $database);
}

# Adds as many jobs of this task, in a named queue if there is one, and returns their ids.
sub add_jobs {
    my ($node, $task, $count, $queue) = @_;
    $queue //= '';
    return split /\n/, value($node, "SELECT id FROM pulse.add_jobs(
        array_fill('($task,,$queue,,,,,)'::pulse.job_spec, '{$count}'))");
}

# How a job ended: "state|attempts|crashes".
sub finished {
    my ($node, $id) = @_;
    return value($node, "SELECT state, attempts, crashes FROM pulse.finished_job WHERE id = $id");
}

# How its attempts ended, in order.
sub outcomes {
    my ($node, $id) = @_;
    return value($node,
        "SELECT string_agg(outcome, ' ' ORDER BY token) FROM pulse.attempt WHERE job_id = $id");
}

# kill -9 of the whole server.
sub kill_server {
    my ($node) = @_;
    # No child may be born unseen.
    my $postmaster = $node->{_pid};
    kill 'STOP', $postmaster;
    my @family = Pulse::Process->family($postmaster);
    kill 'KILL', map { $_->pid } @family;
    $_->wait_gone or die 'a backend survives' for @family;
    $node->kill9;
    # Until somebody reaps it, a dead postmaster looks like one that runs.
    unlink $node->data_dir . '/postmaster.pid',
      $node->host . '/.s.PGSQL.' . $node->port . '.lock';
    return;
}

# The end of every test: no promise is broken, and nobody crashed but whom the test killed. `killed`
# are the process ids of backends that it killed; `dying` matches what a server says that dies
# because the test killed it.
sub expect_healthy {
    my ($node, %options) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(value($node, 'SELECT * FROM pulse.verify()', $options{database}), '', 'verify() is empty');
    my $killed = join '|', @{ $options{killed} // [] }, 'nobody';
    my $dying = $options{dying} // qr/(?!)/;
    my $expected = qr/$server_process \(PID (?:$killed)\) was terminated|$dying/;
    my @marks = grep { /$crash_marks/ && !/$expected/ }
      split /\n/, slurp_file($node->logfile);
    is_deeply(\@marks, [], 'nobody crashed whom the test did not kill');
    return;
}

1;
