# One pulse-worker for several databases of two servers: uneven backlogs, servers that go away, a
# kill, and each kind of task; what the databases are called, and which mistakes are refused.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::ProgramFile;
use Pulse::Prometheus;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, USAGE => 64, GONE => 69, CONFIGURATION => 78 };

# No worker that lives is silent for so long, however busy the machine is.
my %settings = (%QUICK, 'pulse.sweep_threshold' => '8s');
my $main = start_server('main', settings => \%settings);
my $other = start_server('other', settings => \%settings);
# Name of a database in the worker, its server, its name there: two servers have a shop.
my %places = (
    postgres => [ $main, 'postgres' ],
    shop => [ $main, 'shop' ],
    empty => [ $main, 'empty' ],
    far => [ $other, 'postgres' ],
    'far-shop' => [ $other, 'shop' ],
);
for my $node ($main, $other) {
    value($node, 'CREATE DATABASE shop');
    value($node, 'CREATE EXTENSION pg_pulse', 'shop');
}
value($main, 'CREATE DATABASE empty');
for my $name (qw(postgres shop far far-shop)) {
    query($name, "SELECT pulse.set_task('$_', backoff => 'none', max_crashes => 100)")
      for qw(tell linger mail);
}
my $tasks = Pulse::Tasks->new(
    tell => 'tell ran; echo "{\"result\":\"$PULSE_DATABASE $PULSE_JOB_ID\"}" >&3',
    linger => 'tell began; wait_at lingerers; tell ended');
my $workers = 0;

sub query {
    my ($name, $sql) = @_;
    my ($node, $database) = @{ $places{$name} };
    return value($node, $sql, $database);
}

sub add {
    my ($name, $task, $count) = @_;
    return query($name, "SELECT min(id) FROM pulse.add_jobs(
        array_fill('($task,,,,,,,)'::pulse.job_spec, ARRAY[$count]))");
}

sub wait_for_end {
    my ($name, $what) = @_;
    my ($node, $database) = @{ $places{$name} };
    wait_until($node, 'SELECT count(*) = 0 FROM pulse.job', "all jobs of $name ended", $database);
    return;
}

sub option {
    my ($name) = @_;
    my ($node, $database) = @{ $places{$name} };
    return ('--database', "$name=host=${\ $node->host} port=${\ $node->port} dbname=$database");
}

# Of these databases; the first one is the main server's postgres, without a name.
sub start {
    my ($names, %options) = @_;
    return Pulse::Worker->start($main, 'many-' . ++$workers, tasks => $tasks, %options,
        options => [ (map { option($_) } @$names), @{ $options{options} // [] } ]);
}

sub start_registered {
    my ($names, %options) = @_;
    my $worker = start($names, %options);
    $worker->wait_for('registered', database => $_) for 'postgres', @{ $options{wait} // $names };
    return $worker;
}

sub drain {
    my ($worker) = @_;
    is($worker->drain, DRAINED, 'all are drained');
    return;
}

sub outcomes_of {
    return query($_[0], q{SELECT string_agg(DISTINCT state::text, ' ') || ' ' || count(*)
        FROM pulse.finished_job});
}

subtest 'uneven backlogs of four databases on two servers' => sub {
    my %count = (postgres => 5, shop => 300, far => 100, 'far-shop' => 20);
    add($_, 'tell', $count{$_}) for sort keys %count;
    my $worker = start_registered([qw(shop far far-shop)], concurrency => 3);
    is($worker->wait_for('databases')->{names}, 'postgres shop far far-shop',
        'the start tells the databases');
    wait_for_end($_) for sort keys %count;
    is(outcomes_of($_), "completed $count{$_}", "all jobs of $_ completed") for sort keys %count;
    for my $name (sort keys %count) {
        is(query($name, "SELECT count(*) FROM pulse.finished_job
            WHERE result #>> '{}' = '$name ' || id"), $count{$name},
            "each knew that it was of $name");
    }
    is(query('far', q{SELECT DISTINCT info ->> 'databases_of_slots' FROM pulse.worker}), 4,
        'each registration says that the slots are shared');
    drain($worker);
    is(query($_, q{SELECT count(*) FROM pulse.worker WHERE state <> 'stopped'}), 0,
        "and deregistered in $_") for sort keys %count;
};

subtest 'a free slot is used, and no more than all slots' => sub {
    my $worker = start_registered([qw(shop far)], concurrency => 2);
    add($_, 'linger', 2) for qw(shop far);
    $tasks->wait_for('began', count => 2);
    for (1 .. 4) {
        $tasks->open_gate('lingerers');
    }
    wait_for_end($_) for qw(shop far);
    my ($most, $running) = (0, 0);
    for my $told (map { (split / /)[0] } grep { /^(?:began|ended) / } $tasks->lines->lines) {
        $running += $told eq 'began' ? 1 : -1;
        $most = $running if $running > $most;
    }
    is($most, 2, 'two ran at a time');
    drain($worker);
};

subtest 'servers away in turn' => sub {
    my @names = qw(postgres shop far far-shop);
    my $worker = start_registered([qw(shop far far-shop)], concurrency => 2);
    for my $away ([ $other, [qw(postgres shop)] ], [ $main, [qw(far far-shop)] ]) {
        my ($node, $served) = @$away;
        my $from = $worker->lines->position;
        $node->stop('immediate');
        $worker->wait_for('reconnecting', from => $from);
        add($_, 'tell', 30) for @$served;
        wait_for_end($_) for @$served;
        pass("@$served are served meanwhile");
        $node->start;
        add($_, 'tell', 30) for grep { $places{$_}[0] == $node } @names;
        wait_for_end($_) for @names;
        pass('and the others later');
    }
    drain($worker);
};

subtest 'kill -9 in the middle' => sub {
    my @names = qw(postgres shop far far-shop);
    my %before = map { $_ => query($_, 'SELECT count(*) FROM pulse.finished_job') } @names;
    add($_, 'tell', 100) for @names;
    my $doomed = start_registered([qw(shop far far-shop)], concurrency => 3);
    $doomed->wait_for('completed', count => 20);
    is($doomed->kill, 'signal 9', 'the worker is killed');
    my $worker = start_registered([qw(shop far far-shop)], concurrency => 3);
    wait_for_end($_) for @names;
    is(query($_, 'SELECT count(*) FROM pulse.finished_job') - $before{$_}, 100,
        "none of $_ is lost, or ran twice to its end") for @names;
    is(query($_, q{SELECT count(*) FROM (SELECT job_id FROM pulse.attempt
        WHERE outcome = 'completed' GROUP BY 1 HAVING count(*) > 1) AS twice}), 0,
        "nor completed twice in $_") for @names;
    drain($worker);
};

subtest 'programs' => sub {
    my $program = Pulse::ProgramFile->new('shared',
        hello => { protocol => 1, takes => 4, tasks => { mail => {} }, name => 'app' });
    my $worker = start_registered([qw(shop far)], concurrency => undef,
        options => [ '--program', $program->command ]);
    my $gate = $program->gate('all');
    # The same id in two databases, at the same time.
    my %last = map { $_ => query($_, q{SELECT max(id) FROM
        (SELECT id FROM pulse.job UNION ALL SELECT id FROM pulse.finished_job) AS ids}) }
      qw(shop far);
    my ($behind, $ahead) = sort { $last{$a} <=> $last{$b} } keys %last;
    add($behind, 'mail', $last{$ahead} - $last{$behind}) if $last{$ahead} > $last{$behind};
    my %job = map { $_ => query($_, qq{SELECT id FROM pulse.add_job('mail',
        '{"do": "wait", "gate": "$gate"}')}) } qw(shop far);
    is($job{shop}, $job{far}, 'two jobs of one id');
    $program->wait_for('began', "$_:$job{$_}") for qw(shop far);
    $program->open_gate('all');
    wait_for_end($_) for qw(shop far);
    is(query($_, "SELECT state FROM pulse.finished_job WHERE id = $job{$_}"), 'completed',
        "the one of $_ completed") for qw(shop far);
    drain($worker);
    is(scalar($program->told('ended')), 1, 'and the program ended with the worker');
};

subtest 'a process runs jobs of all' => sub {
    $tasks->add(stay => <<'SH');
while read -r line; do
    [[ $line =~ '"id":'([0-9]+) ]]; id=${BASH_REMATCH[1]}
    [[ $line =~ '"database":"'([a-z-]+) ]]
    echo "{\"id\":$id,\"result\":\"${BASH_REMATCH[1]}\"}"
done
SH
    my $worker = start_registered([qw(shop far)],
        options => [ '--process', 'echo=' . $tasks->folder . '/stay' ]);
    add($_, 'echo', 20) for qw(shop far);
    wait_for_end($_) for qw(shop far);
    is(query($_, q{SELECT string_agg(DISTINCT result #>> '{}', ' ') || count(*)
        FROM pulse.finished_job WHERE identifier = 'echo'}), "${_}20", "those of $_ know it")
      for qw(shop far);
    drain($worker);
    unlink $tasks->folder . '/stay';
};

subtest 'functions of each database' => sub {
    for my $name (qw(shop far)) {
        query($name, qq{CREATE FUNCTION own_$name(payload json) RETURNS json LANGUAGE sql
            AS \$\$ SELECT to_json('$name'::text) \$\$});
        query($name, "SELECT pulse.set_task('own', handler => 'own_$name(json)')");
    }
    my $worker = start_registered([qw(shop far)]);
    add($_, 'own', 3) for qw(shop far);
    wait_for_end($_) for qw(shop far);
    is(query($_, q{SELECT string_agg(DISTINCT result #>> '{}', ' ') || count(*)
        FROM pulse.finished_job WHERE identifier = 'own'}), "${_}3", "the one of $_ ran")
      for qw(shop far);
    drain($worker);
};

subtest 'a database without the extension waits for it' => sub {
    my $worker = start_registered([qw(shop empty)], wait => ['shop']);
    like($worker->wait_for('refused', database => 'empty')->{reason}, qr/has no pg_pulse/,
        'the log says so');
    $worker->wait_for('retrying', database => 'empty');
    add('shop', 'tell', 1);
    wait_for_end('shop');
    value($main, 'CREATE EXTENSION pg_pulse', 'empty');
    $worker->wait_for('registered', database => 'empty');
    add('empty', 'tell', 2);
    wait_for_end('empty');
    pass('once the extension is there its jobs run');
    drain($worker);
    value($main, 'DROP EXTENSION pg_pulse', 'empty');
    my $refused = Pulse::Worker->start($main, 'refused', tasks => $tasks, database => 'empty',
        options => [ '--database',
            'none=host=' . $main->host . ' port=' . $main->port . ' dbname=nowhere' ]);
    is($refused->wait_exit, GONE, 'the worker ends when each is refused');
};

subtest 'SIGHUP' => sub {
    my $worker = start_registered([qw(shop far)]);
    $tasks->add(fresh => 'tell fresh');
    my $from = $worker->lines->position;
    $worker->signal('HUP');
    $worker->wait_for('tasks', from => $from);
    add($_, 'fresh', 1) for qw(postgres shop far);
    wait_for_end($_) for qw(postgres shop far);
    pass('a new task is served in each database');
    drain($worker);
};

subtest '--once' => sub {
    add('shop', 'tell', 5);
    add('far', 'tell', 1);
    my $worker = start([qw(shop far)], options => ['--once']);
    is($worker->wait_exit, DRAINED, 'it ends');
    is(query($_, 'SELECT count(*) FROM pulse.job'), 0, "nothing is left in $_") for qw(shop far);
};

subtest 'metrics and readiness' => sub {
    my $worker = start_registered([qw(shop far)], options => [ '--http', '127.0.0.1:0' ]);
    my $http = $worker->wait_for('serving')->{http};
    add($_, 'tell', 2) for qw(shop far);
    wait_for_end($_) for qw(shop far);
    $worker->wait_for('completed', database => $_, count => 2) for qw(shop far);
    my $get = sub { HTTP::Tiny->new->get("http://$http$_[0]") };
    my $metrics = Pulse::Prometheus->parse($get->('/metrics')->{content});
    is($metrics->value('pulse_jobs_finished_total', "database=$_,outcome=completed,task=tell"), 2,
        "completed in $_") for qw(shop far);
    is($metrics->value('pulse_database_ready', "database=$_"), 1, "$_ is ready")
      for qw(postgres shop far);
    is($metrics->value('pulse_slots'), 1, 'the slots are counted once');
    is($get->('/readyz')->{status}, 200, 'ready');
    $other->stop;
    $worker->wait_for('reconnecting', database => 'far');
    is($get->('/readyz')->{status}, 200, 'ready while another database can be served');
    $other->start;
    drain($worker);
};

subtest '--crontab-database' => sub {
    my $folder = PostgreSQL::Test::Utils::tempdir('crontab');
    append_to_file("$folder/crontab", "0 0 1 1 * tell ?id=yearly\n");
    my $worker = start_registered([qw(shop far)],
        options => [ '--crontab', "$folder/crontab", '--crontab-database', 'far' ]);
    $worker->wait_for('crontab_loaded', database => 'far');
    is(query('far', 'SELECT name FROM pulse.schedule'), 'yearly', 'it has the schedules');
    is(query('shop', 'SELECT count(*) FROM pulse.schedule'), 0, 'and no other');
    drain($worker);
    expect_refusal(USAGE, qr/needs --crontab-database NAME/, option('shop'),
        '--crontab', "$folder/crontab");
    expect_refusal(USAGE, qr/no database is named 'nowhere'/, option('shop'),
        '--crontab', "$folder/crontab", '--crontab-database', 'nowhere');
};

# Of a worker for the main server's postgres and what the options say.
sub expect_refusal {
    my ($code, $reason, @options) = @_;
    my $worker = Pulse::Worker->start($main, 'wrong-' . ++$workers, tasks => $tasks,
        options => \@options);
    is($worker->wait_exit, $code, "exit code $code");
    like(join("\n", $worker->lines->lines), $reason, "$reason");
    return;
}

subtest 'names' => sub {
    my $dsn = 'host=' . $main->host . ' port=' . $main->port . ' dbname=';
    expect_refusal(USAGE, qr/'postgres' and 'again' are one database/, '--database',
        "again=${dsn}postgres");
    expect_refusal(USAGE, qr/two databases are named 'postgres'/, '--database',
        'host=' . $other->host . ' port=' . $other->port . ' dbname=postgres');
    expect_refusal(USAGE, qr/'Shop' is no name/, '--database', "${dsn}Shop");
    my $worker = start_registered([], options => [ '--database', "${dsn}shop" ], wait => ['shop']);
    pass('a connection string has the name of its database');
    drain($worker);
};

expect_healthy($main, database => $_) for qw(postgres shop);
expect_healthy($other, database => $_) for qw(postgres shop);
done_testing();
