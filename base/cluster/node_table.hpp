// Node table: the databases of a cluster of Citus, as a server of the cluster lists the nodes.
//
// The server that answers may be missing in its own list: a coordinator without shards need not be
// there. A node is called `node` and the number of its group, which is the shard of its ids. So the
// name stays when another server takes the place of a node.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/postgres/connection.hpp"
#include "base/postgres/connection_options.hpp"
#include "base/postgres/query_result.hpp"
#include "base/postgres/statement.hpp"

namespace pulse {

// The nodes that take writes, in the order of their groups. A NULL group: no such node.
inline constexpr Statement kNodeTable{
    "node_table",
    "SELECT l.groupid AS own_group, n.groupid AS node_group, n.nodename AS host,"
    " n.nodeport AS port FROM pg_catalog.pg_dist_local_group AS l"
    " LEFT JOIN pg_catalog.pg_dist_node AS n ON n.isactive AND n.noderole = 'primary'"
    " ORDER BY n.groupid"};

// A program takes one of both options.
inline constexpr const char* kClusterOrDatabases =
    "--cluster names all databases, and takes no --database beside it: give --cluster alone, or "
    "--database NAME=DSN for each database";

// Reads --cluster DSN, as ConnectOptions::read does.
std::variant<ConnectOptions, std::string> read_cluster(
    const std::string& dsn, const std::string& application_name,
    ConnectOptions::Server server = ConnectOptions::Server::primary);

// The databases of all nodes, at least one: `given` with the host and the port of each node. The
// coordinator is reached by `given` itself where `given` has reached the coordinator.
std::vector<NamedDatabase> databases_of_nodes(const QueryResult& node_table,
                                              const ConnectOptions& given);

// Why there is no list, and the way out; an empty hint where none is known.
struct NodeTableRefusal {
  std::string reason;
  std::string hint;
};
NodeTableRefusal refusal_of_node_table(const SqlError& error, const std::string& database,
                                       const std::string& role);

}  // namespace pulse
