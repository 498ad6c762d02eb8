# The two tables of Citus that tell a program which nodes there are, in a server without Citus.
# Their columns are those of Citus; test/citus/cluster.pl reads the tables of Citus itself.
package Pulse::NodeTable;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);

use Pulse::Server qw(value);

our @EXPORT = qw(make_node_table list_node unlist_node);

# `server` is the coordinator, and lists no node yet.
sub make_node_table {
    my ($server) = @_;
    value($server, q{SET allow_system_table_mods = on;
        CREATE TYPE pg_catalog.noderole AS ENUM ('primary', 'secondary', 'unavailable');
        CREATE TABLE pg_catalog.pg_dist_local_group (groupid int NOT NULL PRIMARY KEY);
        CREATE TABLE pg_catalog.pg_dist_node (nodeid serial PRIMARY KEY, groupid int NOT NULL,
            nodename text NOT NULL DEFAULT 'localhost', nodeport int NOT NULL DEFAULT 5432,
            isactive bool NOT NULL DEFAULT true,
            noderole pg_catalog.noderole NOT NULL DEFAULT 'primary',
            shouldhaveshards bool NOT NULL DEFAULT true);
        GRANT SELECT ON pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node TO PUBLIC;
        INSERT INTO pg_catalog.pg_dist_local_group VALUES (0)});
    return;
}

# As citus_add_node(), but for the number of the group. `more`: columns and their values.
sub list_node {
    my ($coordinator, $group, $node, %more) = @_;
    my %row = (groupid => $group, nodename => "'" . $node->host . "'", nodeport => $node->port,
        %more);
    my @columns = sort keys %row;
    value($coordinator, 'INSERT INTO pg_catalog.pg_dist_node (' . join(', ', @columns)
          . ') VALUES (' . join(', ', @row{@columns}) . ')');
    return;
}

sub unlist_node {
    my ($coordinator, $group) = @_;
    value($coordinator, "DELETE FROM pg_catalog.pg_dist_node WHERE groupid = $group");
    return;
}

1;
