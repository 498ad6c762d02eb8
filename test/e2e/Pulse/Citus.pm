# A cluster of Citus: a coordinator and nodes, each a server of its own on the loopback address,
# from a copy of the server's files that has Citus (test/citus/tree).
package Pulse::Citus;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Test::More;

use PostgreSQL::Test::Utils qw(run_command slurp_file);
use Pulse::Server qw(new_server value wait_until);

# `more`: settings. The server is initialised and started, and has Citus.
sub start_node {
    my ($class, $name, %more) = @_;
    my $node = new_server($name, streaming => 1, settings => {
        # Everything is in this copy, where the server looks by itself.
        (slurp_file($ENV{TEMP_CONFIG}) =~ /^extension_destdir/m ? (extension_destdir => '') : ()),
        shared_preload_libraries => 'citus,pg_pulse',
        listen_addresses => '127.0.0.1',
        max_connections => 100,
        max_prepared_transactions => 100,
        'citus.node_conninfo' => 'sslmode=prefer',
        'citus.local_hostname' => '127.0.0.1',
        'citus.recover_2pc_interval' => '1s',
        %more });
    $node->start;
    value($node, 'CREATE EXTENSION citus');
    return $node;
}

# A coordinator, which has rows too, and `nodes` more; `before`: what it has before all else. Table
# orders is distributed by tenant, and the role app is a producer that may write there.
sub start {
    my ($class, %options) = @_;
    my $self = bless { nodes => [] }, $class;
    push @{ $self->{nodes} }, $class->start_node("node$_", %{ $options{settings} // {} })
      for 0 .. $options{nodes} // 2;
    my ($coordinator, @others) = $self->nodes;
    my $port = $coordinator->port;
    $options{before}->($coordinator) if $options{before};
    value($coordinator, "SELECT citus_set_coordinator_host('127.0.0.1', $port);
        SELECT citus_set_node_property('127.0.0.1', $port, 'shouldhaveshards', true)");
    $self->join_cluster($_) for @others;
    value($coordinator, 'CREATE EXTENSION IF NOT EXISTS pg_pulse; CREATE EXTENSION pg_pulse_citus;
        CREATE ROLE app LOGIN;
        CREATE TABLE orders (tenant text NOT NULL, id bigint, note text);
        GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO app');
    value($coordinator, q{SELECT create_distributed_table('orders', 'tenant', shard_count => 12)});
    value($coordinator, q{SELECT pulse_citus.colocate('orders');
        SELECT pulse_citus.grant('producer', 'app')}) if $options{colocate} // 1;
    return $self;
}

sub nodes { return @{ $_[0]{nodes} } }
sub coordinator { return $_[0]{nodes}[0] }
sub node { return $_[0]{nodes}[ $_[1] ] }

sub join_cluster {
    my ($self, $node) = @_;
    my $port = $node->port;
    return value($self->coordinator, "SELECT citus_add_node('127.0.0.1', $port)");
}

# A key of each node, by its number.
sub keys {
    my ($self) = @_;
    $self->{keys} //= { map { split /\|/ } split /\n/, value($self->coordinator, q{
        SELECT p.groupid, min(k) FROM generate_series(1, 100) AS i, concat('t', i) AS k,
          pg_dist_placement AS p
        WHERE p.shardid = get_shard_id_for_distribution_column('orders', k) GROUP BY 1}) };
    return @{ $self->{keys} }{ 0 .. $#{ $self->{nodes} } };
}

# What a role, app unless it is named, gets: the answer, or the SQLSTATE of the refusal.
sub ask {
    my ($self, $query, %options) = @_;
    my ($status, $out, $err) = ($options{node} // $self->coordinator)->psql('postgres', $query,
        extra_params => [ '-U', $options{role} // 'app', '-v', 'VERBOSITY=verbose' ],
        on_error_stop => 1);
    $self->{said} = $err;
    return $1 if $err =~ /(?:ERROR|FATAL):  (\w{5}):/;
    return "lost: $err" if $status != 0;
    return $out;
}

sub said { return $_[0]{said} }

# How many jobs of a task each node has: "0,2,1".
sub jobs {
    my ($self, $task) = @_;
    return join ',', map {
        value($_, "SELECT count(*) FROM pulse.job WHERE identifier = '$task'")
    } $self->nodes;
}

# The end of a test: each node keeps its promises, and no transaction waits for its second phase.
sub expect_healthy {
    my ($self, %options) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for my $node ($self->nodes) {
        wait_until($node, 'SELECT count(*) = 0 FROM pg_prepared_xacts', 'no prepared transaction');
        subtest $node->name => sub { Pulse::Server::expect_healthy($node, %options) };
    }
    return;
}

1;
