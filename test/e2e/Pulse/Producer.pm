# A process that adds jobs, and the ledger outside of the database of those that the server has
# acknowledged.
package Pulse::Producer;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use File::Basename qw(dirname);

sub start {
    my ($class, $node, $name) = @_;
    my $socket = $node->host . '/.s.PGSQL.' . $node->port;
    return $class->SUPER::start($name, [ $^X, dirname(__FILE__) . '/producer.pl', $name, $socket ]);
}

# Returns once it adds no more.
sub stop {
    my ($self) = @_;
    $self->signal('USR1');
    $self->wait_exit;
    return;
}

sub acknowledged { return map { /^added (\d+)/ ? $1 : () } $_[0]->lines->lines }

# What a producer is never told: all that is neither an acknowledgement nor its end.
sub complaints { return grep { !/^(?:added|stopped)/ } $_[0]->lines->lines }

1;
