# The library for Node in clients/node: where node, npm and the driver pg are.
package Pulse::NodeLibrary;

use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(require_node require_driver relay_tap);

# Skips the whole file where there is no node that the library is for. PULSE_CLIENTS names another
# copy of the libraries; programs of a worker get no variables of such names.
sub require_node {
    $ENV{CLIENTS} = $ENV{PULSE_CLIENTS} // getcwd . '/clients';
    my $version = `node --version 2>/dev/null` || '';
    plan skip_all => 'no node of version 18 or later' if $version !~ /^v(\d+)/ || $1 < 18;
    return;
}

# A file beside which require('pg') finds Debian's driver, or the copy of the driver that
# test/support/packages has unpacked; undef without one.
sub require_driver {
    my $build = $ENV{PULSE_BUILD} // getcwd . '/build';
    for my $libraries ('/usr/share/nodejs', "$build/node/usr/share/nodejs") {
        next if !-d "$libraries/pg";
        # The driver of Debian finds its own libraries in this way only.
        $ENV{NODE_PATH} = $libraries;
        return "$libraries/pg/package.json";
    }
    return;
}

# Takes over the results of a program that prints TAP.
sub relay_tap {
    my ($name, @command) = @_;
    subtest $name => sub {
        open my $said, '-|', @command or die "$command[0]: $!\n";
        while (my $line = <$said>) {
            if ($line =~ /^(not )?ok \d+ - (.*?)(\s*# SKIP.*)?$/) { ok(!$1, $2) }
            elsif ($line =~ /^  (?:  |(?:error|expected|actual): )/) { diag($line) }
        }
        ok(close $said, 'all was run');
    };
    return;
}

1;
