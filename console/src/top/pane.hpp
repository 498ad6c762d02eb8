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
  // The rows of several nodes stand in the order of this field, the highest value first; nullptr:
  // in the order of the nodes.
  const char* merged_by = nullptr;
  const char* node_field = nullptr;  // the NAME of the row's node; nullptr: of one database
};

// Of one database. SQL is for a pane of one database.
const std::vector<Pane>& panes();

// Of several nodes: the nodes, and each pane of one database with a column `node`.
const std::vector<Pane>& node_panes();

// The field of a row that names the node, and tells why the node has no rows.
inline constexpr const char* kNodeWords = "node_words";

}  // namespace pulse::console
