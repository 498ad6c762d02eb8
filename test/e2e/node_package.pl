# The package of the library for Node: packed, installed without a network into an empty folder, and
# its first screen done there as a new user would.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::NodeLibrary;
use Pulse::Prose;
use Pulse::Server;
use Pulse::Worker;

require_node();
plan skip_all => 'no npm' if system('command -v npm >/dev/null') != 0;

my $root = getcwd;
my $folder = PostgreSQL::Test::Utils::tempdir;
my $node = start_server('main', settings => \%PATIENT);
# npm writes where it may, and asks no registry.
local @ENV{qw(HOME npm_config_cache npm_config_offline npm_config_update_notifier)} =
  ($folder, "$folder/cache", 'true', 'false');
local @ENV{qw(PGHOST PGPORT PGUSER)} = ($node->host, $node->port, scalar getpwuid($>));

sub run_in {
    my ($place, $command) = @_;
    my $output = `cd '$place' && ($command) 2>&1`;
    is($?, 0, $command) or diag($output);
    return $output;
}

my %block;
my $readme = prose_of('clients/node/README.md');
push @{ $block{ $2 || $1 } }, $3 while $readme =~ /^```(\w+) ?(\S*)\n(.*?)^```$/msg;

my ($file) = run_in("$root/clients/node", "npm pack --silent --pack-destination '$folder'")
  =~ /(\S+\.tgz)/;
is($file, 'pg-pulse-0.2.0.tgz', 'the package has the version of the extension');
my $files = run_in($folder, "tar -tzf $file");
like($files, qr{^package/$_$}m, "it has $_") for qw(README.md LICENSE index.js index.mjs index.d.ts
  testing.js testing.d.ts bin/pg-pulse.js lib/generated/functions.d.ts);
unlike($files, qr{/test/}, 'but not its tests');

mkdir "$folder/shop" or die "$folder/shop: $!\n";
my ($install, $run) = @{ $block{sh} };
is($install, "npm install pg-pulse\n", 'the first step');
run_in("$folder/shop", "npm install --no-audit --no-fund ../$file");
my ($from_clone) = $readme =~ /`(npm install "\$\(npm pack [^`]*)`/;
symlink $root, "$folder/pg_pulse" or die "$folder/pg_pulse: $!\n";
mkdir "$folder/other" or die "$folder/other: $!\n";
run_in("$folder/other", "$from_clone && node -e \"require('pg-pulse')\"");
append_to_file("$folder/shop/app.mjs", $block{'app.mjs'}[0]);
value($node, 'CREATE DATABASE shop');
value($node, 'CREATE EXTENSION pg_pulse', 'shop');
value($node, q{SELECT pulse.set_task('greet', keep_completed => '1 day')}, 'shop');
my $output = run_in("$folder/shop", $run);
like($output, qr/hello, Ada/, 'the log has what the handler prints');
is(value($node, q{SELECT state, result ->> 'greeted' FROM pulse.finished_job}, 'shop'),
    'completed|Ada', 'the job has run');

append_to_file("$folder/shop/old.cjs", "console.log(typeof require('pg-pulse').work)\n");
like(run_in("$folder/shop", 'node old.cjs'), qr/^function$/m, 'CommonJS has it too');
mkdir "$folder/shop/tasks" or die "$folder/shop/tasks: $!\n";
append_to_file("$folder/shop/tasks/greet.js",
    "module.exports = async ({ name }, { logger }) => logger.info(`bye, \${name}`)\n");
value($node, q{SELECT pulse.add_job('greet', '{"name": "Bob"}')}, 'shop');
like(run_in("$folder/shop",
        q{pulse-worker --database shop --program 'node_modules/.bin/pg-pulse tasks' --once}),
    qr/bye, Bob/, 'a command runs a folder of tasks');
my $usage = `cd '$folder/shop' && node_modules/.bin/pg-pulse 2>&1`;
isnt($?, 0, 'without a folder it is refused');
like($usage, qr/^usage: pulse-worker --database NAME/, 'with its usage');
my $by_hand = `cd '$folder/shop' && node_modules/.bin/pg-pulse tasks 2>&1`;
like($by_hand, qr{pulse-worker --database NAME --program 'node_modules/.bin/pg-pulse tasks'},
    'without a worker it says how it is meant to be started');
my $npx = "--program 'npx --no-install pg-pulse tasks'";
$npx = `cd '$folder/shop' && pulse-worker --database shop $npx --once 2>&1`;
isnt($?, 0, 'npx, which hands no descriptor on, ends the worker');
like($npx, qr/npx and npm hand no descriptors on/, 'which says why');

subtest 'a folder of tasks that use the database outlives a restart of the server' => sub {
    plan skip_all => 'no node with the library pg' if !require_driver();
    append_to_file("$folder/shop/tasks/ask.js",
        "module.exports = async (_, { query }) => { await query('SELECT 1') }\n");
    local $ENV{PGDATABASE} = 'shop';
    my $worker = Pulse::Worker->start_registered($node, 'folder', database => 'shop',
        concurrency => undef,
        options => [ '--pass-env', qw(PGHOST PGPORT PGUSER PGDATABASE), '--program',
            "'$folder/shop/node_modules/.bin/pg-pulse' '$folder/shop/tasks'" ]);
    for my $moment ('before', 'after') {
        $node->restart if $moment eq 'after';
        value($node, q{SELECT pulse.add_job('ask', max_attempts => 1)}, 'shop');
        wait_until($node, q{SELECT count(*) = 0 FROM pulse.job}, "$moment the job ended", 'shop');
    }
    is(value($node, q{SELECT string_agg(state::text, ' ') FROM pulse.finished_job
        WHERE identifier = 'ask'}, 'shop'), 'completed completed', 'both jobs are done');
    is(scalar($worker->events('program_ended')), 0, 'by one program');
    is($worker->drain, 0, 'which ends when it is told to');
};

expect_healthy($node);
done_testing();
