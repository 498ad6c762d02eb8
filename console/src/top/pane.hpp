// The lists of the screen: the query, the columns and the actions of each list.
#pragma once

#include <vector>

#include "output/columns.hpp"

namespace pulse::console {

struct Action {
  char key;
  const char* name;  // "retry": the action of an operation, or the word for the user
  const char* sql;   // with the selected name or id; nullptr: an operation on one job
  bool is_asked = true;
};

struct Pane {
  const char* title;
  const char* sql;
  Columns columns;
  const char* id_field;   // names the selected row
  const char* noun;       // "queue": the kind of a row
  const char* job_field;  // the job that Enter opens; nullptr: none
  std::vector<Action> actions;
  // True in a row about further rows, of which no action is offered; nullptr: there is none.
  const char* more_field = nullptr;
};

const std::vector<Pane>& panes();

// The states of a job that an operation on one job may change, as JSON.
const char* states_for(std::string_view action);

}  // namespace pulse::console
