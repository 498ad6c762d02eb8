#include "database/cluster.hpp"

#include "base/cluster/node_table.hpp"

namespace pulse::console {

std::vector<NamedDatabase> read_nodes(Database& database, const ConnectOptions& given) {
  std::vector<NamedDatabase> nodes = databases_of_nodes(database.query(kNodeTable.sql), given);
  database.close();
  return nodes;
}

}  // namespace pulse::console
