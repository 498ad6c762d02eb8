# What --http serves: whether a worker is alive, whether it is ready, and what it has done; also to
# clients that mean no good, and while there is nobody to serve.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use IO::Socket::INET;
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Lines;
use Pulse::Prometheus;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, USAGE => 64, CONFIGURATION => 78 };

my $node = start_server('main', settings => \%QUICK);
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    fall => 'tell ran; exit 100',
    linger => 'tell began; wait_at lingerers');
my $http = HTTP::Tiny->new(timeout => $PostgreSQL::Test::Utils::timeout_default);

sub start {
    my ($name, %options) = @_;
    my $worker = Pulse::Worker->start($node, $name, tasks => $tasks,
        options => [ '--http', '127.0.0.1:0' ], %options);
    $worker->{http} = $worker->wait_for('serving')->{http};
    return $worker;
}

sub get {
    my ($worker, $path) = @_;
    return $http->get("http://$worker->{http}$path");
}

# Asks until the page has this status, for which nothing else has to happen.
sub wait_for_status {
    my ($worker, $path, $status) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $answer;
    do {
        $answer = get($worker, $path);
        return $answer->{content} if $answer->{status} == $status;
        Pulse::Lines::pause();
    } while time < $end;
    die "$path stays $answer->{status}: $answer->{content}\n";
}

sub metrics { return Pulse::Prometheus->parse(get($_[0], '/metrics')->{content}) }

sub wait_for_metric {
    my ($worker, $value, @of) = @_;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $seen;
    do {
        $seen = metrics($worker)->value(@of);
        return $seen if defined $seen && $seen == $value;
        Pulse::Lines::pause();
    } while time < $end;
    die "@of stays " . ($seen // 'absent') . "\n";
}

sub leave {
    my ($worker) = @_;
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
    return;
}

subtest 'jobs are counted, by task and outcome' => sub {
    my $worker = start('counting');
    wait_for_status($worker, '/readyz', 200);
    my @jobs = (add_jobs($node, 'run', 3), add_job($node, 'fall'));
    $worker->wait_for($_ == $jobs[-1] ? 'failed' : 'completed', job => $_) for @jobs;
    my $seen = metrics($worker);
    is($seen->value('pulse_jobs_finished_total', 'outcome=completed,task=run'), 3, 'completed');
    # On a slow machine a job may wait too long for the only slot: it goes back and is claimed anew.
    my $released = $seen->value('pulse_jobs_finished_total', 'outcome=released,task=run') // 0;
    is($seen->value('pulse_jobs_claimed_total', 'task=run'), 3 + $released, 'claimed');
    is($seen->value('pulse_jobs_finished_total', 'outcome=failed,task=fall'), 1, 'failed');
    is($seen->value('pulse_job_duration_seconds_count', 'task=run'), 3, 'durations');
    cmp_ok($seen->value('pulse_job_duration_seconds_sum', 'task=run'), '>', 0, 'which took time');
    is($seen->value('pulse_stale_refusals_total'), 0, 'nothing was refused');
    my ($version) = run_command([ 'pulse-worker', '--version' ]);
    is($seen->value('pulse_build_info', 'version=' . ($version =~ s/^pulse-worker //r)), 1,
        'its version');
    my $answer = get($worker, '/metrics');
    like($answer->{headers}{'content-type'}, qr{^text/plain; version=0\.0\.4}, 'its type');
    leave($worker);
};

subtest 'every metric is documented' => sub {
    my $worker = start('documented');
    $worker->wait_for('registered');
    my $page = slurp_file('worker/operating.md');
    for my $name (metrics($worker)->names) {
        like($page, qr/^\| `\Q$name\E(?:\{\w+(?:, \w+)*\})?` \|/m, $name);
    }
    leave($worker);
};

subtest 'what runs now, and who drains' => sub {
    my $worker = start('draining');
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    is(wait_for_metric($worker, 1, 'pulse_jobs_running'), 1, 'one job runs');
    is(metrics($worker)->value('pulse_jobs_held'), 1, 'and is held');
    is(metrics($worker)->value('pulse_slots'), 1, 'in the only slot');
    is(wait_for_status($worker, '/readyz', 200), "ok\n", 'ready');
    $worker->signal('TERM');
    is(wait_for_status($worker, '/readyz', 503), "draining\n", 'not ready any more');
    is(get($worker, '/livez')->{status}, 200, 'but alive');
    is(metrics($worker)->value('pulse_worker_ready'), 0, 'as the metric says');
    $tasks->open_gate('lingerers');
    is($worker->wait_exit, DRAINED, 'exit code');
};

subtest 'without the database it is alive and not ready' => sub {
    my $worker = start('waiting');
    wait_for_status($worker, '/readyz', 200);
    $node->stop;
    like(wait_for_status($worker, '/readyz', 503), qr/^no heartbeat was answered for \d/, 'why');
    is(get($worker, '/livez')->{status}, 200, 'alive');
    my $seen = metrics($worker);
    cmp_ok($seen->value('pulse_reconnects_total', 'connection=heartbeat'), '>=', 1, 'reconnects');
    cmp_ok($seen->value('pulse_heartbeat_age_seconds'), '>', 0.5, 'the age of the last beat');
    my $late = start('late');
    is(get($late, '/readyz')->{content}, "not registered\n", 'nor is one that starts now');
    is(get($late, '/livez')->{status}, 200, 'which is alive as well');
    $node->start;
    wait_for_status($_, '/readyz', 200) for $worker, $late;
    leave($_) for $worker, $late;
};

subtest 'the recovered are counted' => sub {
    my $victim = Pulse::Worker->start_registered($node, 'victim', tasks => $tasks);
    my $job = add_job($node, 'linger');
    $tasks->wait_for('began', job => $job);
    $victim->kill;
    my $worker = start('finder');
    my $told = $tasks->wait_for('began', job => $job, attempt => 2);
    ok($told, 'the job runs again');
    $tasks->open_gate('lingerers');
    $worker->wait_for('completed', job => $job);
    # Whoever asked for the sweep has its answer by now.
    $worker->wait_for('heartbeat', from => $worker->lines->position, count => 2);
    my ($swept, $found) = map { metrics($worker)->value('pulse_jobs_recovered_total', "by=$_") }
      qw(sweep host);
    note "by its sweep $swept, by its look at the host $found";
    is( $found, scalar(grep { $_->{jobs} } $worker->events('declared_lost')),
        'as many by the look at the host as its log says');
    is( $swept, scalar(grep { $_->{jobs} } $worker->events('recovered')),
        'and by a sweep of its own');
    leave($worker);
};

# The descriptors of a process that are sockets.
sub sockets { return scalar grep { (readlink // '') =~ /^socket:/ } glob "/proc/$_[0]/fd/*" }

subtest 'clients that mean no good do the worker no harm' => sub {
    my $worker = start('besieged');
    wait_for_status($worker, '/readyz', 200);
    my $before = sockets($worker->pid);
    my ($host, $port) = split /:/, $worker->{http};
    my @crowd;
    for my $number (1 .. 40) {
        my $client = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) or next;
        $client->autoflush(1);
        local $SIG{PIPE} = 'IGNORE';
        if ($number % 4 == 1) { print $client "GET /metrics HTTP/1.1\r\nHost" }
        if ($number % 4 == 2) { print $client "\x16\x03\x01" x 50 }
        if ($number % 4 == 3) { print $client 'GET /' . 'x' x 100_000 }
        push @crowd, $client;
    }
    my @jobs = add_jobs($node, 'run', 5);
    $worker->wait_for('completed', job => $_) for @jobs;
    pass('jobs are done meanwhile');
    $worker->wait_for('heartbeat', from => $worker->lines->position, count => 3);
    pass('beats are answered');
    cmp_ok(sockets($worker->pid), '<=', $before + 33, 'the crowd holds a bounded number of them');
    is(get($worker, '/livez')->{status}, 200, 'others are served, while the crowd still stands');
    close $_ for @crowd;
    leave($worker);
};

subtest 'IPv6, in brackets' => sub {
    my $probe = eval {
        require IO::Socket::IP;
        IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1);
    };
    plan skip_all => "no IPv6 here: $!" if !$probe;
    my $worker = start('six', options => [ '--http', '[::1]:0' ]);
    like($worker->{http}, qr/^\[::1\]:\d+$/, 'it says where');
    is(get($worker, '/livez')->{status}, 200, 'it is served');
    $worker->wait_for('registered');
    leave($worker);
};

subtest 'where it cannot listen' => sub {
    my $worker = start('first');
    $worker->wait_for('registered');
    my $second = Pulse::Worker->start($node, 'second', tasks => $tasks,
        options => [ '--http', $worker->{http} ]);
    is($second->wait_exit, CONFIGURATION, 'a port in use');
    like(join(' ', $second->lines->lines), qr/--http: cannot listen at \Q$worker->{http}\E: /,
        'it is named');
    leave($worker);
    my $bad = Pulse::Worker->start($node, 'bad', tasks => $tasks,
        options => [ '--http', 'everywhere:80' ]);
    is($bad->wait_exit, USAGE, 'no address');
    like(join(' ', $bad->lines->lines), qr/'everywhere:80' is not ADDRESS:PORT/, 'it is named');
};

subtest 'nothing listens unless it is told to' => sub {
    my $worker = Pulse::Worker->start_registered($node, 'plain', tasks => $tasks);
    is(scalar($worker->events('serving')), 0, 'it says nothing of it');
    my %inode = map { (readlink // '') =~ /^socket:\[(\d+)\]/ ? ($1 => 1) : () }
      glob '/proc/' . $worker->pid . '/fd/*';
    my @listening = grep { (split ' ')[3] eq '0A' && $inode{ (split ' ')[9] } }
      map { -r $_ ? split /\n/, slurp_file($_) : () } '/proc/net/tcp', '/proc/net/tcp6';
    is_deeply(\@listening, [], 'and no socket of it listens');
    leave($worker);
};

expect_healthy($node);
done_testing();
