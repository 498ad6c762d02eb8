// Rows as a table, as psql prints one: titles, a rule, aligned columns.
#pragma once

#include <string>

#include "output/columns.hpp"
#include "output/style.hpp"

namespace pulse::console {

// Lines end with a newline. The table leaves out columns without any value. Where the terminal is
// too narrow for the remaining columns, the table cuts the widest texts.
std::string table(const Columns& columns, const QueryResult& rows, const Style& style);

// Rows as a JSON array, an object on each line.
std::string json_list(const Columns& columns, const QueryResult& rows);

}  // namespace pulse::console
