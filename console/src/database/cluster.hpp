// Cluster: the nodes of a cluster of Citus, in place of the databases of a command line.
#pragma once

#include <vector>

#include "database/database.hpp"

namespace pulse::console {

struct Cluster {
  ConnectOptions given;
  std::vector<NamedDatabase> nodes = {};  // as the list of nodes was when it was read
};

// The nodes now. Throws Refused, or Unreachable.
std::vector<NamedDatabase> read_nodes(Database& database, const ConnectOptions& given);

}  // namespace pulse::console
