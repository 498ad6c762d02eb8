// The overviews of all nodes: a row of each, and their sum.
#pragma once

#include "database/node_answer.hpp"
#include "output/columns.hpp"

namespace pulse::console {

// Reads the overview of one node, with a field `identity` that tells one database from another.
QueryResult read_node_overview(Database& database);

// A row of each node: the fields of overview_list(), `node`, and `trouble` of a node without an
// answer. A database that stands under two names is the trouble of the second name. In a row with
// trouble the other fields are NULL.
QueryResult node_overviews(NodeAnswers<QueryResult> answers);
const Columns& node_overview_columns();

// A list of the nodes for people, from node_overviews(): the state of each node in words, and the
// main counts. `state` is the beginning of a trouble, `reason` the rest. In a row with trouble the
// counts are NULL.
const Columns& node_columns();
QueryResult node_list(const QueryResult& overviews);

// One row with the fields of overview_list(): counts of all nodes added up, the oldest due job of
// all, the last time, and true where each node says true. A count of which one node knows a part is
// estimated. Fields that do not add up are NULL.
QueryResult sum_of_nodes(const QueryResult& overviews);

}  // namespace pulse::console
