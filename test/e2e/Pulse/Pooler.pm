# pgbouncer between clients and a server: they share a few of its sessions, a transaction each.
package Pulse::Pooler;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use Carp qw(croak);

use PostgreSQL::Test::Utils ();

use constant { PORT => 6432, PROGRAM => '/usr/sbin/pgbouncer' };

sub is_installed { return -x PROGRAM }

# `size`: how many sessions of the server there are; `mode`: of pooling; `settings`: more lines.
sub start {
    my ($class, $node, $name, %options) = @_;
    # A short path: a socket's has to fit into 107 bytes.
    my $host = PostgreSQL::Test::Utils::tempdir_short;
    my $user = getpwuid $>;
    my $mode = $options{mode} // 'transaction';
    open my $file, '>', "$host/pgbouncer.ini" or croak "$host: $!";
    print $file <<"INI", map { "$_\n" } @{ $options{settings} // [] };
[databases]
* = host=@{[$node->host]} port=@{[$node->port]} user=$user
[pgbouncer]
listen_port = @{[PORT]}
unix_socket_dir = $host
auth_type = any
pool_mode = $mode
default_pool_size = $options{size}
max_client_conn = 500
INI
    close $file or croak "$host: $!";
    my $self =
      $class->SUPER::start($name, [ PROGRAM, "$host/pgbouncer.ini" ], output => 'stderr');
    $self->{host} = $host;
    $self->lines->wait_for('the pooler', sub { $_[0] =~ /process up/ });
    return $self;
}

# Where its clients connect, for Pulse::Worker.
sub address {
    my ($self) = @_;
    return (host => $self->{host}, port => PORT);
}

1;
