# promtool, which Prometheus brings. It is in PATH, or where `make packages FOR=test` unpacked it.
package Pulse::Promtool;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use File::Basename qw(dirname);
use IPC::Run ();

our @EXPORT = qw(has_promtool promtool);

sub _program {
    my $build = $ENV{PULSE_BUILD} // dirname(__FILE__) . '/../../../build';
    for my $folder (split(/:/, $ENV{PATH}), "$build/promtool") {
        return "$folder/promtool" if -x "$folder/promtool";
    }
    return;
}

sub has_promtool { return defined _program() }

# What it says, with this on its standard input; nothing if it is content and says nothing else.
sub promtool {
    my ($arguments, $input) = @_;
    my $said = '';
    IPC::Run::run([ _program(), @$arguments ], '<', \($input // ''), '>', \$said, '2>&1');
    return { status => $? >> 8, said => $said };
}

1;
