# The library for Python in clients/python: which Python has the packages that its tests need.
package Pulse::PythonLibrary;

use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(require_python reads_deep relay_pytest);

my $python;

# The first Python of version 3.11 or later with these modules. Skips the whole file without one.
sub require_python {
    my (@modules) = @_;
    my $test = join '; ', 'import sys; assert sys.version_info >= (3, 11)',
      map { "import $_" } @modules;
    ($python) = grep { system("$_ -c '$test' 2>/dev/null") == 0 } qw(python3 /usr/bin/python3);
    plan skip_all => "no Python 3.11 with @modules" if !$python;
    # The library, and the tasks of tests; PULSE_CLIENTS names another copy of the libraries.
    my $clients = $ENV{PULSE_CLIENTS} // getcwd . '/clients';
    $ENV{PYTHONPATH} = "$clients/python:" . getcwd . '/test/e2e/python';
    # Nothing is written into the tree.
    $ENV{PYTHONDONTWRITEBYTECODE} = 1;
    return $python;
}

# Whether this Python reads a document of 2,000 levels, as 3.13 does.
sub reads_deep {
    my $read = q{import json; json.loads("[" * 2000 + "]" * 2000)};
    return system("$python -c '$read' 2>/dev/null") == 0;
}

# Takes over the results of a file of pytest.
sub relay_pytest {
    my ($name, $file) = @_;
    subtest $name => sub {
        open my $said, '-|', $python, '-m', 'pytest', '-v', '--tb=short', '-p', 'no:cacheprovider',
          "clients/python/test/$file"
          or die "$python: $!\n";
        my $is_told = 0;
        while (my $line = <$said>) {
            $is_told = 1 if $line =~ /^=+ (?:FAILURES|ERRORS) =/;
            if ($line =~ /::(\S+) (PASSED|SKIPPED|FAILED|ERROR)\b/) {
                ok($2 ne 'FAILED' && $2 ne 'ERROR', $1 =~ tr/_/ /r);
            }
            elsif ($is_told) { diag($line) }
        }
        ok(close $said, 'all was run');
    };
    return;
}

1;
