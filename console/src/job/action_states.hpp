// Which states of jobs each action on many jobs may change. The server says which.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "database/database.hpp"

namespace pulse::console {

class ActionStates {
 public:
  explicit ActionStates(Database& database);

  bool may_change(const std::string& action, const std::string& state) const;

 private:
  std::set<std::pair<std::string, std::string>> states_;  // an action and a state
};

}  // namespace pulse::console
