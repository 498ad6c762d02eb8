// One row, with a line for each value.
#pragma once

#include <string>

#include "output/columns.hpp"
#include "output/look.hpp"

namespace pulse::console {

// Without the values that are not there.
std::string record(const Columns& columns, const QueryResult::Row& row, const Look& look);

}  // namespace pulse::console
