# The package of the library for Python: built, installed without a network in an empty folder,
# where its first screen is done as a new user would.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Prose;
use Pulse::PythonLibrary;
use Pulse::Server;

my $python = require_python(qw(build setuptools wheel venv));

my $root = getcwd;
my $folder = PostgreSQL::Test::Utils::tempdir;
my $node = start_server('main', settings => \%PATIENT);
local @ENV{qw(HOME PGHOST PGPORT PGUSER)} = ($folder, $node->host, $node->port, scalar getpwuid $>);

sub run_in {
    my ($place, $command) = @_;
    my $output = `cd '$place' && ($command) 2>&1`;
    is($?, 0, $command) or diag($output);
    return $output;
}

my %block;
my $readme = prose_of('clients/python/README.md');
push @{ $block{ $2 || $1 } }, $3 while $readme =~ /^```(\w+) ?(\S*)\n(.*?)^```$/msg;

run_in($folder, "cp -R '$root/clients/python' source && rm -rf source/test");
run_in("$folder/source", "$python -m build --no-isolation --outdir ..");
my ($wheel, $archive) = map { [ glob "$folder/$_" ] } qw(*.whl *.tar.gz);
is("@$wheel", "$folder/pg_pulse-0.2.0-py3-none-any.whl",
    'the package has the version of the extension');
like("@$archive", qr{^$folder/pg[-_]pulse-0\.2\.0\.tar\.gz$}, 'and so has the archive');
my $files = run_in($folder, "$python -m zipfile -l @$wheel");
like($files, qr{^$_ }m, "it has $_") for qw(pg_pulse/__init__.py pg_pulse/__main__.py
  pg_pulse/generated/functions.py pg_pulse/py.typed);

# setuptools of Debian 13 calls a table in pyproject.toml overdue, that of Debian 12 takes no text.
like(run_in($folder, "tar -xOf @$archive --wildcards '*/PKG-INFO'"), qr/^License: PostgreSQL$/m,
    'it names its licence');
unlike(slurp_file('clients/python/pyproject.toml'), qr/^license\b/m,
    'in a way that old and new setuptools take');

mkdir "$folder/$_" or die "$folder/$_: $!\n" for qw(shop clone python);
my ($install, $run) = @{ $block{sh} };
local $ENV{PATH} = "$folder/python:$ENV{PATH}";
symlink $python, "$folder/python/python3" or die "$python: $!\n";
delete @ENV{qw(PYTHONPATH PYTHONHOME)};
{
    # The registry of this test is the folder.
    local @ENV{qw(PIP_NO_INDEX PIP_FIND_LINKS PIP_DISABLE_PIP_VERSION_CHECK)} = (1, $folder, 1);
    like(run_in("$folder/shop", $install), qr/^Successfully installed pg-pulse-0\.2\.0$/m,
        'the first step installs it');
    my ($clone) = $readme =~ m{`pip install ~/(pg_pulse/clients/python)`};
    run_in($folder, "mkdir -p '$clone' && cp -R source/. '$clone'");
    run_in("$folder/clone", "$python -m venv --system-site-packages .venv && . .venv/bin/activate"
          . " && pip install --no-build-isolation ~/$clone");
    like(run_in("$folder/clone", ". .venv/bin/activate && python3 -m pytest --fixtures $_"),
        qr/^pulse_connection /m, 'pytest has its fixtures')
      for '', '-p pg_pulse.pytest_plugin';
}
local $ENV{PATH} = "$folder/shop/.venv/bin:$ENV{PATH}";
append_to_file("$folder/shop/tasks.py", $block{'tasks.py'}[0]);
value($node, 'CREATE DATABASE shop');
value($node, 'CREATE EXTENSION pg_pulse', 'shop');
value($node, q{SELECT pulse.set_task('greet', keep_completed => '1 day')}, 'shop');
my $output = run_in("$folder/shop", $run);
like($output, qr/hello, Ada/, 'the log has what the handler prints');
is(value($node, q{SELECT state, result ->> 'greeted' FROM pulse.finished_job}, 'shop'),
    'completed|Ada', 'the job has run');

my $usage = `cd '$folder/shop' && python3 -m pg_pulse 2>&1`;
isnt($?, 0, 'without a module it is refused');
like($usage, qr/^usage: python -m pg_pulse/, 'with its usage');
my $by_hand = `cd '$folder/shop' && python3 -m pg_pulse tasks 2>&1`;
isnt($?, 0, 'without a worker');
like($by_hand, qr{pulse-worker --database NAME --program 'python3 -m pg_pulse}, 'it says how');

expect_healthy($node);
done_testing();
