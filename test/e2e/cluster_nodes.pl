# --cluster of pulse-worker and pulse: the nodes as the coordinator's table has them, nodes that
# come and go at SIGHUP, a coordinator that is away, and what is refused.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Console;
use Pulse::NodeTable;
use Pulse::Prometheus;
use Pulse::Serve;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, USAGE => 64, GONE => 69, NO_RIGHT => 77, CONFIGURATION => 78 };

my $coordinator = start_server('coordinator', settings => \%QUICK);
my ($near, $late) = map { start_server($_, settings => \%QUICK) } qw(near late);
my %server = (node0 => $coordinator, node1 => $near, node2 => $late);
make_node_table($coordinator);
list_node($coordinator, 1, $near);
value($_, q{SELECT pulse.set_task('linger', backoff => 'none')}) for values %server;
my $tasks = Pulse::Tasks->new(
    tell => 'tell ran; echo "{\"result\":\"$PULSE_DATABASE $PULSE_JOB_ID\"}" >&3',
    linger => 'tell began; wait_at lingerers; tell ended');
my $dsn = 'host=' . $coordinator->host . ' port=' . $coordinator->port . ' dbname=postgres';
my $workers = 0;

sub start {
    my (%options) = @_;
    return Pulse::Worker->start($coordinator, 'cluster-' . ++$workers, tasks => $tasks,
        where => [ '--cluster', $dsn ], concurrency => 2, %options);
}

sub start_registered {
    my ($names, %options) = @_;
    my $worker = start(%options);
    $worker->wait_for('registered', database => $_) for @$names;
    return $worker;
}

# Reads the table again; returns the names that it says.
sub add {
    my ($name, $task, $count) = @_;
    add_job($server{$name}, $task) for 1 .. $count // 1;
    return;
}

sub wait_for_end {
    my ($name) = @_;
    wait_until($server{$name}, 'SELECT count(*) = 0 FROM pulse.job', "all jobs of $name ended");
    return;
}

subtest 'each node is served' => sub {
    my $worker = start_registered([qw(node0 node1)], options => [ '--http', '127.0.0.1:0' ]);
    is($worker->wait_for('databases')->{names}, 'node0 node1', 'by the number of its group');
    add($_, 'tell', 3) for qw(node0 node1);
    wait_for_end($_) for qw(node0 node1);
    is(value($server{$_}, "SELECT count(*) FROM pulse.finished_job
        WHERE result #>> '{}' = '$_ ' || id"), 3, "the jobs knew that they were of $_")
      for qw(node0 node1);
    my $http = $worker->wait_for('serving')->{http};
    my $metrics = sub { Pulse::Prometheus->parse(
        HTTP::Tiny->new->get("http://$http/metrics")->{content}) };
    is($metrics->()->value('pulse_database_ready', "database=$_"), 1, "$_ is ready")
      for qw(node0 node1);

    list_node($coordinator, 2, $late);
    is($worker->reload_databases, 'node0 node1 node2', 'a node that was added');
    $worker->wait_for('registered', database => 'node2');
    is($metrics->()->value('pulse_stale_refusals_total', 'database=node2'), 0, 'is counted');
    add('node2', 'tell');
    wait_for_end('node2');
    is(scalar($worker->events('registered')), 3, 'the others notice nothing');
    wait_until($near, q{SELECT info ->> 'databases_of_slots' = '3' FROM pulse.worker
        WHERE state <> 'stopped'}, 'but that more share the slots');

    add('node2', 'linger');
    $tasks->wait_for('began');
    unlist_node($coordinator, 2);
    is($worker->reload_databases, 'node0 node1', 'a node that is gone');
    $worker->wait_for('draining', database => 'node2');
    add('node2', 'tell');
    $tasks->open_gate('lingerers');
    is($worker->wait_for('stopped', database => 'node2')->{completed}, 2,
        'ends its jobs, as at a stop');
    is(value($late, 'SELECT count(*) FROM pulse.job'), 1, 'and claims no more');
    is(value($late, q{SELECT count(*) FROM pulse.worker WHERE state <> 'stopped'}), 0,
        'and has no worker');
    add($_, 'tell') for qw(node0 node1);
    wait_for_end($_) for qw(node0 node1);

    list_node($coordinator, 2, $late);
    $worker->reload_databases;
    wait_for_end('node2');
    pass('a node that comes back is served again');
    unlist_node($coordinator, 2);
    is($worker->drain, DRAINED, 'all are drained');
};

subtest 'another address of a node' => sub {
    list_node($coordinator, 2, $near, isactive => 'false');
    list_node($coordinator, 3, $late, noderole => q{'secondary'});
    my $worker = start_registered([qw(node0 node1)]);
    is($worker->wait_for('databases')->{names}, 'node0 node1', 'what takes no writes is no node');
    unlist_node($coordinator, $_) for 1, 2, 3;
    list_node($coordinator, 1, $late);
    is($worker->reload_databases, 'node0 node1', 'the name stays');
    $worker->wait_for('stopped', database => 'node1');
    add('node2', 'tell');
    wait_for_end('node2');
    is(value($late, q{SELECT result #>> '{}' = 'node1 ' || id FROM pulse.finished_job
        ORDER BY id DESC LIMIT 1}), 't', 'and the server of the new address is served');
    unlist_node($coordinator, 1);
    list_node($coordinator, 1, $near);
    is($worker->drain, DRAINED, 'all are drained');
};

subtest 'the coordinator is away' => sub {
    my $worker = start_registered([qw(node0 node1)]);
    $coordinator->stop('immediate');
    my $from = $worker->lines->position;
    $worker->signal('HUP');
    $worker->wait_for('reconnecting', connection => 'cluster', from => $from);
    add('node1', 'tell');
    wait_for_end('node1');
    pass('the other nodes are served meanwhile');
    my $second = start();
    $second->wait_for('reconnecting', connection => 'cluster');
    my $third = start();
    $third->wait_for('reconnecting', connection => 'cluster');
    is($third->drain, DRAINED, 'all are drained');
    $coordinator->start;
    is($worker->wait_for('databases', from => $from)->{names}, 'node0 node1',
        'the table is read once the coordinator is back');
    $second->wait_for('registered', database => $_) for qw(node0 node1);
    pass('and a worker that has waited for the coordinator begins');
    is($_->drain, DRAINED, 'all are drained') for $worker, $second;
};

subtest 'schedules and --once' => sub {
    my $folder = PostgreSQL::Test::Utils::tempdir('crontab');
    append_to_file("$folder/crontab", "0 0 1 1 * tell ?id=yearly\n");
    my @crontab = ('--crontab', "$folder/crontab", '--crontab-database');
    add($_, 'tell', 2) for qw(node0 node1);
    my $worker = start(options => [ '--once', @crontab, 'node1' ]);
    is($worker->wait_exit, DRAINED, '--once ends');
    is(value($_, 'SELECT count(*) FROM pulse.job'), 0, 'nothing is left') for $coordinator, $near;
    is(value($near, 'SELECT name FROM pulse.schedule'), 'yearly', 'the node has the schedules');
    is(value($coordinator, 'SELECT count(*) FROM pulse.schedule'), 0, 'and no other node');
    $worker = start(options => [ @crontab, 'node9' ]);
    is($worker->wait_exit, USAGE, 'a node that is not there');
    like($worker->wait_for('refused')->{reason}, qr/no node is named 'node9'/, 'is told');
};

# Of a worker, and of `pulse overview`.
sub expect_refusal {
    my ($codes, $reason, @options) = @_;
    my ($of_worker, $of_console) = @$codes;
    my $worker = start(where => \@options);
    is($worker->wait_exit, $of_worker, "pulse-worker ends with $of_worker");
    like(join("\n", $worker->lines->lines), $reason, "$reason");
    my $said = '';
    IPC::Run::run([ 'pulse', @options, 'overview' ], '>', \my $out, '2>', \$said);
    is($? >> 8, $of_console, "pulse ends with $of_console");
    $said =~ s/\s+/ /g;
    like($said, $reason, 'for the same reason');
    return;
}

subtest 'mistakes' => sub {
    expect_refusal([ USAGE, USAGE ], qr/takes no --database beside/, '--cluster', $dsn,
        '--database', $dsn);
    expect_refusal([ USAGE, USAGE ], qr/hostaddr would lead to one address/, '--cluster',
        "$dsn hostaddr=127.0.0.1");
    expect_refusal([ GONE, GONE ], qr/database postgres has no Citus .*--database NAME=DSN/,
        '--cluster', 'host=' . $near->host . ' port=' . $near->port . ' dbname=postgres');
    value($coordinator, 'CREATE ROLE visitor LOGIN; REVOKE SELECT ON pg_catalog.pg_dist_node
        FROM PUBLIC');
    expect_refusal([ CONFIGURATION, NO_RIGHT ],
        qr/role visitor may not read the list of nodes .*GRANT SELECT ON/, '--cluster',
        "$dsn user=visitor");

    my $worker = start_registered([qw(node0 node1)]);
    value($coordinator, 'ALTER TABLE pg_catalog.pg_dist_node RENAME TO pg_dist_none');
    my $from = $worker->lines->position;
    $worker->signal('HUP');
    like($worker->wait_for('cluster_refused', from => $from)->{reason}, qr/has no Citus/,
        'a table that is gone is told');
    add('node1', 'tell');
    wait_for_end('node1');
    pass('and all nodes are served on');
    value($coordinator, 'ALTER TABLE pg_catalog.pg_dist_none RENAME TO pg_dist_node;
        GRANT SELECT ON pg_catalog.pg_dist_node TO PUBLIC');
    is($worker->drain, DRAINED, 'all are drained');
};

subtest 'pulse' => sub {
    my $nodes = sub {
        my $out = '';
        IPC::Run::run([ 'pulse', '--cluster', $dsn, '--json', 'overview' ], '>', \$out);
        return join ' ', map { $_->{node} } @{ json_of($out) };
    };
    is($nodes->(), 'node0 node1', 'a row of each node');
    my $serve = start_serve($coordinator, databases => [ '--cluster', $dsn ]);
    my $lines = $serve->{program}->lines;
    my $page = sub { HTTP::Tiny->new->get("$serve->{url}$_[0]") };
    is($page->('/n/node1/')->{status}, 200, 'a site of each node');
    is($page->('/n/node2/')->{status}, 404, 'and of no other node');
    my $from = $lines->position;
    $serve->{program}->signal('HUP');
    $lines->wait_for('the list', sub { $_[0] =~ /databases .*node0 node1/ }, from => $from);
    list_node($coordinator, 2, $late);
    $from = $lines->position;
    $serve->{program}->signal('HUP');
    $lines->wait_for('a new server', sub { $_[0] =~ /serving/ }, from => $from);
    is($page->('/n/node2/')->{status}, 200, 'a node that was added has a site after SIGHUP');
    is(scalar(grep { /starting_again/ } $lines->lines), 1, 'without a change nothing begins again');
    $coordinator->stop('immediate');
    $from = $lines->position;
    $serve->{program}->signal('HUP');
    $lines->wait_for('a warning', sub { $_[0] =~ /cluster_refused/ }, from => $from);
    is($page->('/n/node2/')->{status}, 200, 'while the coordinator is away the nodes stay');
    $coordinator->start;
    unlist_node($coordinator, $_) for 1, 2;
    $from = $lines->position;
    $serve->{program}->signal('HUP');
    $lines->wait_for('a new server', sub { $_[0] =~ /serving/ }, from => $from);
    is($page->('/n/node1/')->{status}, 404, 'a node that is gone has no site');
    like($page->('/')->{content}, qr{/n/node0}, 'and one node is a cluster, too');
    is($nodes->(), 'node0', 'as in the terminal');
    $serve->{program}->signal('TERM');
    is($serve->{program}->wait_exit, DRAINED, 'SIGTERM ends it');
};

expect_healthy($_) for values %server;
done_testing();
