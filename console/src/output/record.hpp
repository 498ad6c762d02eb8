// One row, with a line for each value.
#pragma once

#include <string>

#include "output/columns.hpp"
#include "output/style.hpp"

namespace pulse::console {

// Without the values that are not there.
std::string record(const Columns& columns, const QueryResult::Row& row, const Style& style);

// How many columns of the terminal the titles of such a record take.
std::size_t title_width(const Columns& columns);

}  // namespace pulse::console
