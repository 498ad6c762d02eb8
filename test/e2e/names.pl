# Files with odd names in the tasks folder: the worker serves those that the server takes as names
# of tasks. It says a word of each other one, and no file keeps a worker from starting.
use strict;
use warnings FATAL => 'all';

use Encode qw(encode);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%PATIENT);

# Every character of Latin and some beyond, within a name; and names that are odd as a whole.
my @names = map { encode('UTF-8', 'a' . chr($_) . 'b') }
  (1 .. 0x2E, 0x30 .. 0x17F, 0x200B, 0x2028, 0x20AC, 0xFEFF, 0x1F600);
push @names, '-', '--help', '~', 'a ', ' a', '$(id)', '*', "a\xFFb", "a\xC3", '\\', 'a\\', '\\a',
  'x' x 128, 'x' x 129, encode('UTF-8', "\x{20AC}" x 85), 'in/a\\b', 'in/side', 'back\\slash/task';
my $tasks = Pulse::Tasks->new;
for my $folder ('in', 'back\\slash') {
    mkdir $tasks->folder . "/$folder", 0755 or die "$folder: $!\n";
}
$tasks->add($_, 'tell ran') for @names;

my $worker = Pulse::Worker->start_registered($node, 'odd', tasks => $tasks);
my %served = map { $_ => 1 } split /\n/, value($node, q{SELECT string_agg(
    encode(convert_to(t, 'UTF8'), 'hex'), E'\n') FROM pulse.worker, unnest(tasks) AS t});
cmp_ok(scalar keys %served, '>', 300, 'most names are served');

# Those of which the server says the same.
value($node, q{CREATE FUNCTION is_taken(name text) RETURNS bool LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pulse.add_job(convert_from(decode(name, 'hex'), 'UTF8'), run_at => now() + '1 day');
      RETURN true;
    EXCEPTION WHEN SQLSTATE 'PU004' OR character_not_in_repertoire THEN
      RETURN false;
    END $$});
my %taken = map { $_ => 1 } split /\n/, value($node, sprintf
      q{SELECT n FROM unnest('{%s}'::text[]) AS n WHERE is_taken(n)},
    join(',', map { unpack 'H*', $_ } @names));

# The worker takes none that may look like another on a terminal: the second set of controls.
my %left_out = map { encode('UTF-8', 'a' . chr($_) . 'b') => 1 } 0x80 .. 0x9F;
my @wrong = grep { !$left_out{$_} && !$taken{ unpack 'H*', $_ } != !$served{ unpack 'H*', $_ } }
  @names;
is_deeply(\@wrong, [], 'it serves what the server takes, and nothing else');

my @refused = $worker->events('task_refused');
is(scalar @refused, scalar(@names) - keys %served, 'it says a word of each other one');
ok(scalar(grep { $_->{reason} =~ m{/tasks/in/a\\+b has a name that no task can have$} } @refused),
    'and names the file');

my $job = add_job($node, q{in/side});
$worker->wait_for('completed', job => $job);
$worker->signal('TERM');
is($worker->wait_exit, 0, 'it drains');

subtest 'a worker of processes says nothing of a folder that nobody named' => sub {
    my $only = Pulse::Worker->start_registered($node, 'only',
        options => [ '--process', 'greet=cat' ]);
    is_deeply([ $only->events('task_refused') ], [], 'no file is refused');
    $only->signal('TERM');
    is($only->wait_exit, 0, 'it drains');
};

expect_healthy($node);
done_testing();
