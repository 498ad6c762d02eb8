// Columns of a list: the text of each value for a person, and for a script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/postgres/query_result.hpp"

namespace pulse::console {

enum class Kind {
  text,
  state,    // a text with a colour
  id,       // 64 bits, so a string in JSON
  count,    // a whole number
  number,   // any number
  part,     // from 0 to 1, of the whole
  seconds,  // elapsed time, as EXTRACT(epoch …) gives it; "?": not known
  time,     // a timestamp
  boolean,
  names,  // an array of texts as JSON
  json,
};

struct Column {
  std::string title;  // empty: only in JSON
  std::string field;  // of the query's result, and the key in JSON
  Kind kind = Kind::text;
  std::size_t max_width = 40;  // in a table
  // Of a count: the field with the plus behind a part, or the field that names the parts in JSON.
  std::string plus_field = {};
};
using Columns = std::vector<Column>;

// The text of a value for a person; empty for NULL. Always inert.
std::string shown(const Column& column, const QueryResult::Cell& value);

// A plus for a count of which the server saw a part, else nothing.
std::string plus_of(const Column& column, const QueryResult::Row& row);

// The text of the column's field in a row, with such a plus.
std::string shown(const Column& column, const QueryResult::Row& row);

// The same of a field of a row.
std::string shown(const Columns& columns, std::string_view field, const QueryResult::Row& row);

// The text of a value for a script, as JSON.
std::string json_of(const Column& column, const QueryResult::Cell& value);

// A row as one JSON object.
std::string json_of(const Columns& columns, const QueryResult::Row& row);

}  // namespace pulse::console
