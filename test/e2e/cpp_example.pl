# The program of worker/handlers.md in C++: it is built outside of the tree against the installed
# library, with CMake and with pkg-config, and does what the page says.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Handlers;
use Pulse::Program;
use Pulse::Server;

my $folder = 'worker/examples/cpp';
my $shown = slurp_file('worker/handlers.md');
for my $file (['cpp', 'main.cpp'], ['cmake', 'CMakeLists.txt']) {
    my ($language, $name) = @$file;
    my ($block) = $shown =~ /^```$language\n(.*?)^```$/ms;
    is($block, slurp_file("$folder/$name"), "the page shows $name as it is");
}

my $node = start_server('main', settings => \%QUICK);
my $greeter = Pulse::Handlers::build($folder) . '/greeter';
my @arguments = ('host=' . $node->host . ' port=' . $node->port . ' dbname=postgres');

my $worker = Pulse::Program->start('greeter', [ $greeter, @arguments ]);
my $greet = add_job($node, 'greet', q{'{"name": "world"}'});
my $count = add_job($node, 'count', q{'{"to": 1000}'});
my $page = add_job($node, 'index', q{'{"page": "/"}'});
my $none = add_job($node, 'index', q{'{}'});
my $bad = add_job($node, 'greet', q{'{}', max_attempts => 1});
wait_until($node, 'SELECT NOT EXISTS (SELECT FROM pulse.job)', 'all jobs are done');
is(join(' ', $worker->lines->wait_for('a greeting', sub { 1 })), 'hello world', 'it greets');
is(finished($node, $_), 'completed|1|0', "job $_") for $greet, $count, $page;
is(value($node, "SELECT result FROM pulse.finished_job WHERE id = $count"), '{"counted":1000}',
    'with a result');
is(finished($node, $none), 'failed|1|0', 'a job of a batch failed');
is(finished($node, $bad), 'failed|1|0', 'what the JSON library throws fails its job');
like(value($node, "SELECT last_error FROM pulse.finished_job WHERE id = $bad"), qr/name/,
    'with its words');
$worker->signal('TERM');
is($worker->wait_exit, 0, 'it drains');

my $other = PostgreSQL::Test::Utils::tempdir('other') . '/greeter';
$ENV{PKG_CONFIG_PATH} = Pulse::Handlers::prefix() . '/lib/pkgconfig';
my ($flags, undef) = run_command([ 'pkg-config', '--cflags', '--libs', 'pg_pulse_worker' ]);
command_ok([ 'g++', '-std=c++20', '-o', $other, "$folder/main.cpp", split ' ', $flags ],
    'it builds with what pkg-config says');
delete $ENV{LD_LIBRARY_PATH};
$worker = Pulse::Program->start('other', [ $other, @arguments ]);
$greet = add_job($node, 'greet', q{'{"name": "moon"}'});
is($worker->lines->wait_for('a greeting', sub { 1 }), 'hello moon', 'and works');
$worker->signal('TERM');
is($worker->wait_exit, 0, 'and drains');

my $symbols = `nm -D --defined-only $ENV{PKG_CONFIG_PATH}/../libpg_pulse_worker.so`;
my @strangers = grep { !/ [VWu] / && !/ _ZN?K?S?t?\w*8pg_pulse/ } split /\n/, $symbols;
is_deeply(\@strangers, [], 'the library exports its interface and nothing else');

expect_healthy($node);
done_testing();
