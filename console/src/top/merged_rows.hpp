// The rows of several nodes as the rows of one pane.
#pragma once

#include "database/node_answer.hpp"
#include "top/pane.hpp"

namespace pulse::console {

// First a row of each node without an answer, then the rows of the other nodes, in the order of the
// pane. Each row has the fields `node` and kNodeWords besides the fields that the pane reads.
QueryResult merged_rows(const Pane& pane, const NodeAnswers<QueryResult>& answers);

}  // namespace pulse::console
