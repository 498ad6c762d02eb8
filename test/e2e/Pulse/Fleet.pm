# Many workers in one process, each with a session of its own: attached, with heartbeats, never idle
# for long. They reconnect at once wherever there is a server, and go on with what they hold.
package Pulse::Fleet;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use File::Basename qw(dirname);

use Pulse::Server qw(wait_until);

# Returns once so many workers are attached. `options`: servers, those that they try in turn;
# keeps, whether they hold on to jobs with an even id until their session is lost, so that some run
# whenever a server ends.
sub start {
    my ($class, $name, $count, %options) = @_;
    my @servers = @{ $options{servers} };
    my $self = $class->SUPER::start($name,
        [ $^X, dirname(__FILE__) . '/fleet.pl', $count, $options{keeps} // 0,
            map { $_->host . '/.s.PGSQL.' . $_->port } @servers ]);
    $self->{count} = $count;
    $self->wait_until_beating($servers[0]);
    return $self;
}

# Until each of them has beaten in an attached session, since this server started or since a time.
sub wait_until_beating {
    my ($self, $node, $since) = @_;
    $since = defined $since ? "'$since'" : 'pg_postmaster_start_time()';
    wait_until($node, qq{SELECT count(*) = $self->{count} FROM pulse.worker_status
        WHERE name = 'fleet' AND attached AND status = 'alive' AND last_heartbeat_at > $since},
        'all beat');
    return;
}

# From now on they hold on to nothing.
sub let_go { return $_[0]->signal('USR1') }

# What they were told that a living worker is never told: words of the log, each with its worker.
sub complaints {
    my ($self) = @_;
    return grep { /^(?:lost|stopping|draining|refused)/ } $self->lines->lines;
}

# Jobs whose completion was refused.
sub stale { return grep { defined } map { /^stale (\d+)/ } $_[0]->lines->lines }

1;
