#include "job/action_states.hpp"

namespace pulse::console {
namespace {

constexpr const char* kRead =
    "SELECT a.action, s.state FROM pulse.operation_actions() AS a, unnest(a.states) AS s (state)";

}  // namespace

ActionStates::ActionStates(Database& database) {
  const QueryResult rows = database.query(kRead);
  for (std::size_t i = 0; i < rows.size(); ++i)
    states_.emplace(rows[i].text("action"), rows[i].text("state"));
}

bool ActionStates::may_change(const std::string& action, const std::string& state) const {
  return states_.count({action, state}) > 0;
}

}  // namespace pulse::console
