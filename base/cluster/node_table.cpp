#include "base/cluster/node_table.hpp"

#include <algorithm>
#include <utility>

#include "base/postgres/sqlstate.hpp"

namespace pulse {
namespace {

// The group of the coordinator in each cluster.
constexpr std::int64_t kCoordinator = 0;

std::string name_of_node(std::int64_t group) { return "node" + std::to_string(group); }

}  // namespace

std::variant<ConnectOptions, std::string> read_cluster(const std::string& dsn,
                                                       const std::string& application_name,
                                                       ConnectOptions::Server server) {
  auto options = ConnectOptions::read(dsn, application_name, server);
  const auto* read = std::get_if<ConnectOptions>(&options);
  // libpq takes the address from the environment or a service file, whatever the host is.
  if (read != nullptr && read->value("hostaddr")) {
    return "hostaddr would lead to one address for all nodes: give host";
  }
  return options;
}

std::vector<NamedDatabase> databases_of_nodes(const QueryResult& node_table,
                                              const ConnectOptions& given) {
  std::vector<NamedDatabase> databases;
  bool has_own = false;
  for (std::size_t i = 0; i < node_table.size(); ++i) {
    const auto group = node_table[i].optional_integer("node_group");
    if (!group) continue;
    const bool is_own = *group == node_table[i].integer("own_group");
    has_own = has_own || is_own;
    databases.push_back(
        {name_of_node(*group), is_own && *group == kCoordinator
                                   ? given
                                   : given.at(node_table[i].text("host"),
                                              std::to_string(node_table[i].integer("port")))});
  }
  const bool may_be_missing = !node_table.empty() && !has_own;
  if (!may_be_missing) return databases;
  const std::int64_t own = node_table[0].integer("own_group");
  if (own == kCoordinator || databases.empty()) {
    databases.insert(databases.begin(), {name_of_node(own), given});
  }
  return databases;
}

NodeTableRefusal refusal_of_node_table(const SqlError& error, const std::string& database,
                                       const std::string& role) {
  if (error.sqlstate == sqlstate::kNoTable) {
    return {"database " + database + " has no Citus (" + error.message + ')',
            "--cluster takes the coordinator of a cluster of Citus; give other databases by "
            "--database NAME=DSN each"};
  }
  if (error.sqlstate == sqlstate::kNoPrivilege) {
    return {"role " + role + " may not read the list of nodes (" + error.message + ')',
            "GRANT SELECT ON pg_catalog.pg_dist_node, pg_catalog.pg_dist_local_group TO the role"};
  }
  return {with_detail(error.message, error.detail), error.hint};
}

}  // namespace pulse
