# `pulse serve` of several databases: the whole site of each below /n/NAME, the sum of all, and a
# row for each: also for a database that is gone, one that hangs, and one that stands there twice.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use IO::Socket::INET ();
use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils   ();
use Pulse::Console;
use Pulse::Serve;
use Pulse::Server;
use Pulse::Session;

use constant { USAGE => 64, GONE => 69 };

my $node = start_server('main', settings => \%PATIENT);
value($node, 'CREATE DATABASE two');
value($node, 'CREATE EXTENSION pg_pulse; SELECT pulse.set_shard(2)', 'two');
value($node, 'CREATE ROLE an_operator LOGIN');
value($node, q{SELECT pulse.grant_operator('an_operator')}, $_) for qw(postgres two);
value($node, q{SELECT pulse.add_job('brew') FROM generate_series(1, 3)});
value($node, q{SELECT pulse.set_queue('oven', 5); SELECT pulse.add_job('bake')
    FROM generate_series(1, 4)}, 'two');
my $brew = value($node, 'SELECT min(id) FROM pulse.job');
my $bake = value($node, 'SELECT min(id) FROM pulse.job', 'two');

sub dsn {
    my ($name, $database) = @_;
    return ('-d', "$name=host=" . $node->host . ' port=' . $node->port . " dbname=$database");
}
my @both = (dsn('one', 'postgres'), dsn('two', 'two'));

# Nobody listens at the one port, and nobody answers at the other one, for as long as it is asked.
my $nobody = PostgreSQL::Test::Cluster::get_free_port();
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20, Blocking => 0)
  or die "listen: $!";
my @gone = ('-d', "gone=host=127.0.0.1 port=$nobody dbname=x");
my @hangs = ('-d', 'hangs=host=127.0.0.1 port=' . $listener->sockport
      . ' dbname=x sslmode=disable gssencmode=disable connect_timeout=3600');

sub serve_nodes {
    my ($databases) = @_;
    return start_serve($node, databases => $databases, tokens => { ada => 'an_operator' });
}
my $serve = serve_nodes([ @both, @gone, @hangs, dsn('again', 'postgres') ]);
my $http = HTTP::Tiny->new(timeout => $PostgreSQL::Test::Utils::timeout_default, max_redirect => 0);

sub ask {
    my ($path, %more) = @_;
    my $server = delete $more{of} // $serve;
    return $http->get("$server->{url}$path", {
        headers => { Authorization => "Bearer $server->{secret}{ada}" },
        exists $more{data} ? (data_callback => $more{data}) : () });
}

# The cells of each row of a table, and the figures, by their names.
sub rows {
    my ($page) = @_;
    my %rows;
    for my $row ($page->{content} =~ m{<tr>(.*?)</tr>}gs) {
        my @cells = $row =~ m{<td[^>]*>(.*?)</td>}gs or next;
        s/<[^>]*>//g for @cells;
        $rows{ shift @cells } = \@cells;
    }
    return \%rows;
}

sub figures {
    my ($page) = @_;
    return { $page->{content} =~ m{class="name">(\w+)</span><span class="big">([^<]*)<}g };
}

sub connections {
    my $count = 0;
    $count++ while $listener->accept;
    return $count;
}

# Asks until the nodes that can answer have: a busy machine may be late for the patience that the
# program has with each.
sub when_well {
    my ($ask, $is_well) = @_;
    my $answer;
    for (my $end = time + $PostgreSQL::Test::Utils::timeout_default; time < $end;) {
        $answer = $ask->();
        last if $is_well->($answer);
    }
    return $answer;
}

subtest 'the first page has the sum and a row of each node' => sub {
    my $page = when_well(sub { ask('/') }, sub {
        my $rows = rows($_[0]);
        return 2 == grep { ($rows->{$_}[0] // '') eq 'answers' } qw(one two);
    });
    is($page->{status}, 200, 'also beside a node that never answers');
    is(figures($page)->{Ready}, 7, 'the sum counts each database once');
    my $rows = rows($page);
    is_deeply([ @{ $rows->{one} }[ 0, 1 ] ], [ 'answers', 3 ], 'a node with its jobs');
    is_deeply([ @{ $rows->{two} }[ 0, 1 ] ], [ 'answers', 4 ], 'another node');
    is($rows->{gone}[0], 'cannot be reached', 'a node that is gone says so');
    is($rows->{hangs}[0], 'does not answer', 'and one that hangs');
    is($rows->{again}[0], 'is the database of node one', 'and a name too many');
    is(rows(ask('/'))->{hangs}[0], 'does not answer', 'the next page says the same');
    is(connections(), 1, 'and asked it no second time');
    my $event = '';
    my $read = sub {
        $event .= $_[0];
        die "enough\n" if $event =~ /data: /;
    };
    ask('/live/nodes', data => $read);
    like($event, qr/data: .*hangs/, 'as the live page does');
};

subtest 'a node has the whole site' => sub {
    for my $path (qw(/ /jobs /failed /queues /tasks /workers /schedules /flows /operations
        /doctor)) {
        my $page = ask("/n/two$path");
        is($page->{status}, 200, $path);
        my @elsewhere = grep { !m{^(?:/n/two(?:/.*)?|(?:/n/\w+)?\Q$path\E|/)$} && !/^#/ }
          $page->{content} =~ m{ (?:href|action|src|data-live)="([^"]*)"}g;
        is_deeply(\@elsewhere, [], 'leads to pages of the node, and to the same page of another');
    }
    like(ask('/n/two/jobs')->{content}, qr/bake/, 'its jobs');
    unlike(ask('/n/one/jobs')->{content}, qr/bake/, 'are no jobs of another node');
    is(ask('/n/two/v1/openapi.json')->{status}, 200, 'the API');
    like(ask('/n/two/v1/openapi.json')->{content}, qr{"url": "/n/two"}, 'which tells its address');
    is(ask('/n/two/healthz')->{status}, 200, 'and the rest');
    is(ask('/n/gone/jobs')->{status}, 503, 'a node that is gone has a page that says so');
    is(ask($_)->{status}, 404, "$_ is nowhere") for qw(/n/three/jobs /queues /n /n/twofold);
};

subtest 'a sign-in is for all nodes, and a change for one' => sub {
    my $signed = $http->post_form("$serve->{url}/n/two/login",
        { token => $serve->{secret}{ada}, next => '/queues' });
    is($signed->{headers}{location}, '/n/two/queues', 'the visitor comes back to the node');
    my ($cookie) = $signed->{headers}{'set-cookie'} =~ /^([^;]+)/;
    my $with = { headers => { Cookie => $cookie } };
    is($http->get("$serve->{url}$_", $with)->{status}, 200, "and is in at $_")
      for '/', '/n/one/jobs';
    my $question = $http->get("$serve->{url}/n/one/queues/pause?queue=oven", $with);
    like($question->{content}, qr{class="database">one<}, 'a question names the node');
    my $asked = $http->get("$serve->{url}/n/two/queues/pause?queue=oven", $with);
    my ($csrf) = $asked->{content} =~ /name="csrf" value="(\w{64})"/;
    my $done = $http->post_form("$serve->{url}/n/two/queues/pause?queue=oven", { csrf => $csrf },
        $with);
    like($done->{headers}{location}, qr{^/n/two/}, 'a change leads to a page of the node');
    my $paused = 'SELECT count(*) FROM pulse.queue_settings WHERE paused';
    is(value($node, $paused, 'two'), 1, 'is made there');
    is(value($node, $paused), 0, 'and nowhere else');
    ok($serve->{program}->lines->wait_for('the log', sub { $_[0] =~ /changed.*database=two/ }),
        'the log names the node');
};

subtest 'a list of the command line is of all nodes' => sub {
    my $list = sub {
        my ($out, $err) = ('', '');
        IPC::Run::run([ 'pulse', @_ ], '<', '/dev/null', '>', \$out, '2>', \$err,
            IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
        return { status => $? >> 8, out => $out, err => $err };
    };
    my @all = (@both, @gone, @hangs, dsn('again', 'postgres'));
    my %row;
    my $said = when_well(sub { $list->(@all, '--json', 'overview') }, sub {
        %row = map { $_->{node} => $_ } @{ json_of($_[0]{out}) };
        return 2 == grep { defined $row{$_}{ready} } qw(one two);
    });
    is($row{one}{ready}, 3, 'a node with its jobs');
    is($row{two}{shard}, 2, 'and another one');
    is($row{$_}{ready}, undef, "no jobs of $_") for qw(gone hangs again);
    like($row{gone}{trouble}, qr/refused/, 'which says why');
    is($row{hangs}{trouble}, 'does not answer', 'and a node that hangs');
    is($row{again}{trouble}, 'is the database of node one', 'and a name too many');
    is($said->{status}, GONE, 'the exit status tells that not all answered');
    my $both_answer = sub {
        my (@arguments) = @_;
        return when_well(sub { $list->(@both, @arguments) }, sub { $_[0]{status} == 0 });
    };
    $said = $both_answer->('queues');
    is($said->{status}, 0, 'as it tells that all did');
    like($said->{out}, qr/^node .*\ntwo +oven/, 'a table begins with the node');
    unlike($said->{out}, qr/trouble/, 'and has no trouble');
    is(scalar @{ json_of($both_answer->('--json', $_)->{out}) }, $_ eq 'tasks' ? 2 : 0, $_)
      for qw(tasks workers schedules);
    my $lock = Pulse::Session->new($node, database => 'two');
    $lock->query('BEGIN; LOCK TABLE pulse.schedule IN ACCESS EXCLUSIVE MODE');
    $said = $list->(@both, 'schedules');
    like($said->{out}, qr/^two +does not answer/m, 'a node that hangs after its session began');
    is($said->{status}, GONE, 'is told by the status, too');
    $lock->query('ROLLBACK');
};

subtest 'the id of a job leads to its node' => sub {
    my $choice = when_well(sub { ask("/jobs/$brew") },
        sub { $_[0]{content} =~ /have a job of this id/ });
    is($choice->{status}, 200, 'where a node that may have it is away, the visitor chooses');
    like($choice->{content}, qr{have a job of this id.*/n/one/jobs/$brew.*may have.*/n/gone/jobs/},
        'between the node that has it and the nodes that do not answer');
    my $well = serve_nodes(\@both);
    my $where = sub {
        my ($id) = @_;
        return when_well(sub { ask("/jobs/$id", of => $well) },
            sub { defined $_[0]{headers}{location} })->{headers}{location};
    };
    is($where->($brew), "/n/one/jobs/$brew", 'else to the one that has it');
    is($where->($bake), "/n/two/jobs/$bake", 'whichever that is');
    is(when_well(sub { ask('/jobs/4000', of => $well) }, sub { $_[0]{status} == 404 })->{status},
        404, 'and to none for an id that nobody has');
    ask('/', of => $well);
    value($node, 'ALTER DATABASE two ALLOW_CONNECTIONS false');
    value($node, q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = 'two'});
    is($where->($brew), "/n/one/jobs/$brew", 'a node of another shard is not asked about');
    is($where->($bake), "/n/two/jobs/$bake", 'and an id of its shard is its own');
    stop_serve($well);
};

subtest 'mistakes are refused' => sub {
    my $refuse = sub {
        my ($expected, @arguments) = @_;
        my ($out, $err) = ('', '');
        IPC::Run::run([ 'pulse', @arguments ], '>', \$out, '2>', \$err);
        is($? >> 8, USAGE, "pulse @arguments[-2, -1]");
        like($err, $expected, 'with the reason');
    };
    $refuse->(qr/two databases are named 'one'/, dsn('one', 'postgres'), dsn('one', 'two'),
        'serve');
    $refuse->(qr/is no name for one of several/, '-d', 'host=a', '-d', 'b=host=c', 'serve');
    $refuse->(qr/takes one database/, @both, 'failures');
};

subtest 'a database that hangs does not keep the server from its end' => sub {
    ask('/');
    stop_serve($serve);
    is($serve->{program}->wait_exit, 0, 'SIGTERM ends it');
};

close $listener;
done_testing();
