# A job after others gets their results, whatever runs it: an executable, a process, a handler in
# C++ or a function of the database. So does its next attempt, after its worker was killed.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Handlers;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%QUICK);
my $tasks = Pulse::Tasks->new(
    page => q{printf '{"result": {"page": %s}}\n' "$PULSE_ATTEMPT" >&3},
    book => q{tell began; wait_at books; printf '{"result": %s}\n' "$(cat)" >&3});
value($node, q{
    CREATE FUNCTION index_book(job pulse.claimed_job) RETURNS json LANGUAGE sql AS
      'SELECT job.parents';
    SELECT pulse.set_task('index', handler => 'index_book(pulse.claimed_job)');
    SELECT pulse.set_task(t, backoff => 'none', keep_completed => '1 day')
      FROM unnest('{book,index,shelf,ends}'::text[]) AS t});

sub start {
    my ($name, @options) = @_;
    return Pulse::Worker->start_registered(
        $node, $name, tasks => $tasks, concurrency => 4, @options);
}

# What the job of this task got.
sub got {
    my ($task, $path) = @_;
    wait_until($node, "SELECT count(*) = 1 FROM pulse.finished_job WHERE identifier = '$task'
        AND state = 'completed'", "$task is done");
    return value($node, "SELECT result #> '$path' FROM pulse.finished_job
        WHERE identifier = '$task'");
}

my $worker = start('first', options => [ '--process', "shelf=test/e2e/processes/echo.sh" ]);
my $ids = value($node, q{SELECT string_agg(id::text, ' ' ORDER BY key) FROM pulse.add_flow('[
    {"key": "1", "identifier": "page"}, {"key": "2", "identifier": "page"},
    {"key": "book", "identifier": "book", "after": ["1", "2"]},
    {"key": "index", "identifier": "index", "after": ["1", "2"]},
    {"key": "shelf", "identifier": "shelf", "after": ["1", "2"]},
    {"key": "ends", "identifier": "ends", "after": ["1", "2"]}]') WHERE key IN ('1', '2')});
my ($first, $second) = split / /, $ids;
my $expected = join ',', map {
    qq({"id":$_->[0],"id_text":"$_->[0]","key":"$_->[1]","state":"completed",)
      . q("result":{"page": 1},"last_error":null})
} [ $first, 1 ], [ $second, 2 ];

is(got('index', '{}'), "[$expected]", 'a function gets the results');
is(got('shelf', '{job,parents}'), "[$expected]", 'a process does');
$tasks->wait_for('began');
$worker->kill;
my $handlers = start('handlers', program => Pulse::Handlers::build('test/e2e/handlers')
      . '/pulse-handlers');
is(got('ends', '{}'), "[$expected]", 'a handler in C++ gets them');
my $next = start('next');
$tasks->open_gate('books', 2);
is(got('book', '{job,parents}'), "[$expected]", 'the next attempt after a kill gets them');
is(value($node, q{SELECT attempts > 1 FROM pulse.finished_job WHERE identifier = 'book'}), 't',
    'which is another one');
is(value($node, 'SELECT * FROM pulse.verify()'), '', 'verify() finds nothing');
$_->signal('TERM') for $handlers, $next;
$_->wait_exit for $handlers, $next;
expect_healthy($node);
done_testing();
