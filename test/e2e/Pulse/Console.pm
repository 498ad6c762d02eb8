# `pulse` as its users run it: what it prints, and how it ends.
package Pulse::Console;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use IPC::Run ();
use JSON::PP ();

our @EXPORT = qw(pulse pulse_as pulse_at json_of rows_of);

# As the superuser of the test, on the database of that name.
sub pulse { my ($node, @arguments) = @_; return pulse_as($node, undef, @arguments) }

# What is its standard input.
our $stdin = '/dev/null';

# Returns what pulse_at() returns.
sub pulse_as {
    my ($node, $role, @arguments) = @_;
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    $database .= " user=$role" if defined $role;
    return pulse_at($database, @arguments);
}

# Of the database of a connection string. Returns a hash: status, out, err.
sub pulse_at {
    my ($database, @arguments) = @_;
    my ($out, $err) = ('', '');
    local $ENV{PGAPPNAME};
    delete $ENV{PGAPPNAME};
    IPC::Run::run([ 'pulse', '-d', $database, @arguments ],
        '<', $stdin, '>', \$out, '2>', \$err);
    return { status => $? >> 8, out => $out, err => $err };
}

sub json_of { my ($text) = @_; return JSON::PP->new->utf8->allow_nonref->decode($text) }

# The rows of a list in JSON; undef where there was none.
sub rows_of {
    my ($node, @arguments) = @_;
    my $said = pulse($node, '--json', @arguments);
    return $said->{status} == 0 ? json_of($said->{out}) : undef;
}

1;
