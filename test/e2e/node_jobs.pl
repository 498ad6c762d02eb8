# Jobs of several databases in one list, page by page, and one job of several: `pulse jobs`, `pulse
# job`, and the pages of all nodes. Also beside nodes that are gone, hang, freeze, or have an older
# pg_pulse: each is a row that says so.
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

use constant { USAGE => 64, GONE => 69, REFUSED => 1 };

my $node = start_server('main', settings => \%PATIENT);
value($node, "CREATE DATABASE $_") for qw(two old);
value($node, q{ALTER DATABASE two SET timezone = 'Asia/Tokyo'});
value($node, 'CREATE EXTENSION pg_pulse; SELECT pulse.set_shard(2)', 'two');
value($node, q{CREATE EXTENSION pg_pulse VERSION '0.1.0'}, 'old');
value($node, 'CREATE ROLE an_operator LOGIN');
value($node, q{SELECT pulse.grant_operator('an_operator')}, $_) for qw(postgres two);

# Jobs 1 to 12 in the order of time, in turn at one and two, three at each time at the same node:
# ids of shard 2 are all above the ids of shard 0.
sub add_numbered {
    my ($database, @numbers) = @_;
    for my $number (@numbers) {
        value($node, "SELECT pulse.add_job('job-$number')", $database);
        value($node, "UPDATE pulse.job SET created_at = '2026-11-01 12:00Z'::timestamptz
            + $number * interval '1 min' WHERE identifier = 'job-$number'", $database);
    }
}
add_numbered('postgres', 1 .. 3, 7 .. 9);
add_numbered('two', 4 .. 6, 10 .. 12);

sub dsn {
    my ($name, $database) = @_;
    return ('-d', "$name=host=" . $node->host . ' port=' . $node->port . " dbname=$database");
}
my @both = (dsn('one', 'postgres'), dsn('two', 'two'));
my $nobody = PostgreSQL::Test::Cluster::get_free_port();
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die "listen: $!";
my @bad = ('-d', "gone=host=127.0.0.1 port=$nobody dbname=x",
    '-d', 'hangs=host=127.0.0.1 port=' . $listener->sockport
      . ' dbname=x sslmode=disable gssencmode=disable connect_timeout=3600',
    dsn('old', 'old'), dsn('again', 'postgres'));

# Asks again where a busy machine kept a node that is well from answering within a second.
my $well = 'one|two';

sub when_well {
    my ($ask) = @_;
    my $answer;
    for (my $end = time + $PostgreSQL::Test::Utils::timeout_default; time < $end;) {
        $answer = $ask->();
        my $said = join ' ', grep { defined } @{$answer}{qw(out err content)};
        $said =~ s/<[^>]*>/ /g;
        last if $said !~ /\b(?:$well)\b\W+(?:trouble\W+)?does not answer/;
    }
    return $answer;
}

sub run_once {
    my ($out, $err) = ('', '');
    IPC::Run::run([ 'pulse', @_ ], '<', '/dev/null', '>', \$out, '2>', \$err,
        IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
    return { status => $? >> 8, out => $out, err => $err };
}

sub run_pulse {
    my (@arguments) = @_;
    return when_well(sub { run_once(@arguments) });
}

# Of the databases of @both, on a terminal.
sub jobs_on_terminal {
    my (@databases) = @_;
    my $more = pop @databases;
    my $command = "pulse @{[ map { qq('$_') } @databases ]} --no-pager jobs $more";
    return when_well(sub { return { out => scalar `script -qec "$command" /dev/null` } })->{out};
}

sub jobs {
    my $said = run_pulse('--json', 'jobs', @_);
    return { %$said, rows => json_of($said->{out}) };
}

sub numbers { return join ' ', map { ($_->{identifier} // '') =~ /job-(\d+)/ ? $1 : () } @_ }

subtest 'one list has the jobs of all nodes, the newest first' => sub {
    my $list = jobs(@both);
    is(numbers(@{ $list->{rows} }), join(' ', reverse 1 .. 12), 'whatever their ids are');
    is($list->{rows}[0]{node}, 'two', 'each with its node');
    is($list->{status}, 0, 'and all have answered');
    $list = jobs(@both, '--task', 'job-7');
    is(numbers(@{ $list->{rows} }), 7, 'a filter is for all nodes');
    my $table = run_pulse(@both, 'jobs', '-n', 1)->{out};
    like($table, qr/^node +job .*\ntwo +\d+ +job-12 /, 'a table begins with the node');
};

# Reads page after page by what standard error of a terminal says, as a user does.
sub page_after_page {
    my ($size, @databases) = @_;
    my (@pages, $next);
    do {
        my $list = jobs(@databases, '-n', $size, defined $next ? ('--before', $next) : ());
        push @pages, numbers(@{ $list->{rows} });
        my $before = defined $next ? "--before '$next'" : '';
        ($next) = jobs_on_terminal(@databases, "-n $size $before") =~ /more: --before (\S+)/;
        diag "not ended: @pages" if @pages > 12;
    } while (defined $next && @pages < 12);
    return \@pages;
}

subtest 'a page goes on where the page before ended' => sub {
    is_deeply(page_after_page(5, @both), [ '12 11 10 9 8', '7 6 5 4 3', '2 1' ],
        'each node at its own place');
    my ($next) = jobs_on_terminal(@both, '-n 3') =~ /more: --before (\S+)/;
    like($next, qr/^one:\d+,two:\d+$/, 'the place names each node');
    value($node, q{SELECT pulse.add_job('late')}, $_) for qw(postgres two);
    my $list = jobs(@both, '-n', 4, '--before', $next);
    is(numbers(@{ $list->{rows} }), '9 8 7 6', 'jobs that are added meanwhile move no page');
    $list = jobs(@both, '--before', 'one:0,two:0');
    is_deeply($list->{rows}, [], 'behind the last job is nothing');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'late'}, $_) for qw(postgres two);
};

subtest 'a place that cannot be is refused' => sub {
    for my $case ([ qr/is no list of places/, '17' ], [ qr/is no list of places/, 'one:17,' ],
        [ qr/is no list of places/, 'one:17,one:18' ], [ qr/is no list of places/, 'one:x' ],
        [ qr/none is named three/, 'one:17,three:4' ]) {
        my $said = run_pulse(@both, 'jobs', '--before', $case->[1]);
        is($said->{status}, USAGE, "at $case->[1]");
        like($said->{err}, $case->[0], 'with the reason');
    }
    my $said = run_pulse('-d', $node->connstr('postgres'), 'jobs', '--before', 'one:17');
    is($said->{status}, USAGE, 'a place of a node, of one database');
    like($said->{err}, qr/'one:17' is no id/, 'with the reason');
};

subtest 'a node without jobs to tell is a row that says why' => sub {
    my $list = jobs(@both, @bad);
    my %trouble = map { $_->{node} => $_->{trouble} } grep { defined $_->{trouble} }
      @{ $list->{rows} };
    is_deeply([ sort keys %trouble ], [qw(again gone hangs old)], 'each of them');
    like($trouble{gone}, qr/^cannot be reached: /, 'gone');
    is($trouble{hangs}, 'does not answer', 'hangs');
    like($trouble{old}, qr/list_jobs/, 'older');
    is($trouble{again}, 'is the database of node one', 'there twice');
    is(numbers(@{ $list->{rows} }), join(' ', reverse 1 .. 12), 'the others tell their jobs, once');
    is($list->{status}, GONE, 'the exit status tells that not all did');
    my $lock = Pulse::Session->new($node, database => 'two');
    $lock->query('BEGIN; LOCK TABLE pulse.job IN ACCESS EXCLUSIVE MODE');
    $well = 'one';
    $list = jobs(@both, '--before', 'one:9999,two:35184372088840');
    is_deeply([ map { "$_->{node} $_->{trouble}" } grep { defined $_->{trouble} }
        @{ $list->{rows} } ], ['two does not answer'], 'a node that freezes');
    is(numbers(@{ $list->{rows} }), '9 8 7 3 2 1', 'holds up no other');
    $lock->query('ROLLBACK');
    $well = 'one|two';
};

subtest 'a job is found at its node' => sub {
    my %id = map { $_ => value($node, 'SELECT min(id) FROM pulse.job', $_) } qw(postgres two);
    my $said = run_pulse(@both, '--json', 'job', $id{two});
    is($said->{status}, 0, 'whichever that is');
    my $job = json_of($said->{out});
    is_deeply([ $job->{node}, $job->{job}{identifier} ], [ 'two', 'job-4' ], 'which it tells');
    like(run_pulse(@both, 'job', $id{postgres})->{out}, qr/^node +one\njob +$id{postgres}\n/,
        'in words, too');
    $said = run_pulse(@both, 'job', 4000);
    is($said->{status}, REFUSED, 'an id that nobody has');
    like($said->{err}, qr/no node has a job 4000/, 'is told');
    $said = run_pulse(@both, @bad, 'job', $id{postgres});
    is($said->{status}, GONE, 'a node that is away may have one of the id');
    like($said->{out}, qr/^node +one\n/, 'the one that was found is shown');
    like($said->{err}, qr/^pulse: gone cannot be reached.*^pulse: hangs does not answer$/ms,
        'beside the nodes that did not answer');
    value($node, 'CREATE DATABASE twin');
    value($node, q{CREATE EXTENSION pg_pulse; SELECT pulse.add_job('brew')}, 'twin');
    $said = run_pulse(@both, dsn('twin', 'twin'), 'job', $id{postgres});
    is($said->{status}, REFUSED, 'two databases have one of the id');
    like($said->{err}, qr/each of these has a job $id{postgres}: one, twin; /, 'which are named');
    is($said->{out}, '', 'and none is shown for the other');
};

my $http = HTTP::Tiny->new(timeout => $PostgreSQL::Test::Utils::timeout_default, max_redirect => 0);

subtest 'a page lists the jobs of all nodes' => sub {
    my $serve = start_serve($node, databases => [ @both, @bad ],
        tokens => { ada => 'an_operator' });
    my $ask = sub {
        my ($path) = @_;
        return when_well(sub {
            $http->get("$serve->{url}$path",
                { headers => { Authorization => "Bearer $serve->{secret}{ada}" } });
        });
    };
    my $page = $ask->('/jobs');
    is($page->{status}, 200, 'beside nodes that are away');
    my @names = $page->{content} =~ />job-(\d+)</g;
    is("@names", join(' ', reverse 1 .. 12), 'in the order of time');
    my $job = value($node, q{SELECT id FROM pulse.job WHERE identifier = 'job-12'}, 'two');
    like($page->{content}, qr{<a href="/n/two/jobs/$job">}, 'a job leads to its page at its node');
    like($page->{content}, qr{>due</span> <b[^>]*>12<}, 'a tab counts the jobs of all');
    like($page->{content}, qr{>hangs</a>.*?does not answer}s, 'a node that hangs has a row');
    unlike($page->{content}, qr{name="action"}, 'no button changes jobs of several nodes');
    @names = $ask->('/jobs?task=job-4')->{content} =~ />job-(\d+)</g;
    is("@names", 4, 'a filter is for all');
    is($ask->('/jobs?before=17')->{status}, 422, 'a place of no node is refused');

    # Failures of both, 60 in turn: more than a page has.
    for my $database (qw(postgres two)) {
        value($node, q{SELECT pulse.add_job('bad', max_attempts => 1) FROM generate_series(1, 30)},
            $database);
        my $worker = value($node, q{SELECT id FROM pulse.register_worker('w', NULL)}, $database);
        value($node, "WITH c AS (SELECT array_agg(id) AS ids, array_agg(token) AS tokens
            FROM pulse.claim($worker, 30, '{bad}')) SELECT count(*) FROM c, pulse.fail_many(c.ids,
            c.tokens, array_fill('it broke'::text, ARRAY[30]), array_fill(false, ARRAY[30]))",
            $database);
        value($node, q{UPDATE pulse.finished_job SET finished_at = '2026-11-02 12:00Z'::timestamptz
            + id % 32 * interval '1 min' + CASE current_database() WHEN 'two' THEN interval '1 s'
            ELSE '0' END}, $database);
    }
    my ($path, %seen, @moments) = ('/failed');
    while (defined $path && keys %seen < 100) {
        my $failed = $ask->($path)->{content};
        push @moments, $failed =~ m{data-title="ended"[^>]*><time [^>]*datetime="([^"]+)"}g;
        $seen{$_}++ for $failed =~ m{href="(/n/\w+/jobs/\d+)"}g;
        ($path) = $failed =~ m{href="([^"]+)"[^>]*>Older<};
        $path =~ s/&amp;/&/g if defined $path;
    }
    is(scalar keys %seen, 60, 'page after page has each failure');
    is_deeply([ grep { $_ != 1 } values %seen ], [], 'once');
    is_deeply(\@moments, [ reverse sort @moments ], 'the last failure first');
    close $listener;
    stop_serve($serve);
};

done_testing();
