# Programs of libraries, as test/e2e/node/program.mjs: jobs whose payload says what their handler
# does, and what the program tells.
package Pulse::LibraryActs;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use JSON::PP ();

use PostgreSQL::Test::Utils qw(append_to_file);
use Pulse::Lines;
use Pulse::Server;

our @EXPORT = qw(act_on told_file told_lines wait_told act gate open_gate);

my ($node, $folder, $told);
my $programs = 0;

# The server of all that follows.
sub act_on {
    ($node) = @_;
    $folder = PostgreSQL::Test::Utils::tempdir;
    return;
}

# Of the next program, and of wait_told() from now on.
sub told_file {
    my $file = "$folder/told-" . ++$programs;
    append_to_file($file, '');
    $told = Pulse::Lines->new($file);
    return $file;
}

sub told_lines { return $told->lines }

# The words of the first line that begins so.
sub wait_told {
    my (@words) = @_;
    my $wanted = join ' ', @words;
    return split / /, $told->wait_for($wanted, sub { "$_[0] " =~ /^\Q$wanted\E / });
}

# Adds a job; `options`: arguments of pulse.add_job after the payload, all others are the payload's.
sub act {
    my ($do, %more) = @_;
    my $options = delete $more{options};
    my $payload = "'" . JSON::PP->new->canonical->encode({ do => $do, %more }) . "'";
    return add_job($node, 'act', join ', ', $payload, $options // ());
}

# Of a job that waits: the job goes on once open_gate() has been called.
sub gate { return "$folder/gate-$_[0]" }
sub open_gate { return append_to_file(gate($_[0]), '') }

1;
