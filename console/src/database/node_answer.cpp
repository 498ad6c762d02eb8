#include "database/node_answer.hpp"

namespace pulse::console {

std::string trouble_of_second_name(NodesByIdentity& noted, const std::string& identity,
                                   const std::string& node) {
  const auto [first, is_new] = noted.try_emplace(identity, node);
  return is_new ? "" : "is the database of node " + first->second;
}

}  // namespace pulse::console
