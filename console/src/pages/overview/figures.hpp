// The figures of an overview: counts of jobs and workers in large digits.
#pragma once

#include "base/postgres/query_result.hpp"
#include "html/markup.hpp"

namespace pulse::console {

// Figures about all nodes lead nowhere: each node has a list of its own.
enum class Links { shown, none };

// `overview`: a row with the fields of overview_list().
Markup overview_figures(const QueryResult::Row& overview, Links links = Links::shown);

}  // namespace pulse::console
