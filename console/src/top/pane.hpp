// The lists of the screen: what each asks, shows and can change.
#pragma once

#include <vector>

#include "output/columns.hpp"

namespace pulse::console {

struct Action {
  char key;
  const char* name;  // "retry": the action of an operation, or what the user is told
  const char* sql;   // with the selected name or id; nullptr: an operation on one job
  bool is_asked = true;
};

struct Pane {
  const char* title;
  const char* sql;
  Columns columns;
  const char* id_field;   // names what is selected
  const char* noun;       // "queue": what a row is
  const char* job_field;  // the job that Enter opens; nullptr: none
  std::vector<Action> actions;
};

const std::vector<Pane>& panes();

// The states that an operation on one job may find it in, as JSON.
const char* states_for(std::string_view action);

}  // namespace pulse::console
