#include "output/columns.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/text/inert.hpp"
#include "base/text/json_text.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

std::string joined(const QueryResult::Cell& array) {
  std::string text;
  for (const std::string& name : json_strings(array)) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

// A value that JSON has no number for becomes null.
std::string json_number(const std::string& text) {
  const bool is_number = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  return is_number && !text.empty() ? text : "null";
}

}  // namespace

std::string shown(const Column& column, const QueryResult::Cell& value) {
  if (!value) return {};
  switch (column.kind) {
    case Kind::count: return inert(spell_count(*value));
    case Kind::part: return progress_bar(std::strtod(value->c_str(), nullptr), 12);
    case Kind::seconds: return spell_known_seconds(*value);
    case Kind::time: return inert(spell_time(*value));
    case Kind::boolean: return *value == "t" ? "yes" : "no";
    case Kind::names: return inert(joined(value));
    default: return inert(visible(*value));
  }
}

std::string plus_of(const Column& column, const QueryResult::Row& row) {
  if (column.plus_field.empty() || row.is_null(column.field)) return {};
  const QueryResult::Cell& plus = row.optional_text(column.plus_field);
  if (!plus || !plus->starts_with('[')) return plus.value_or("");
  const auto parts = json_strings(plus);
  return std::find(parts.begin(), parts.end(), column.field) != parts.end() ? "+" : "";
}

std::string shown(const Column& column, const QueryResult::Row& row) {
  return shown(column, row.optional_text(column.field)) + plus_of(column, row);
}

std::string shown(const Columns& columns, std::string_view field, const QueryResult::Row& row) {
  for (const Column& column : columns) {
    if (column.field == field) return shown(column, row);
  }
  return {};
}

std::string json_of(const Column& column, const QueryResult::Cell& value) {
  if (!value) return "null";
  std::string text;
  switch (column.kind) {
    case Kind::count:
    case Kind::number:
    case Kind::part:
    case Kind::seconds: return json_number(*value);
    case Kind::boolean: return *value == "t" ? "true" : "false";
    case Kind::names:
    case Kind::json: return *value;
    case Kind::time: append_json_string(text, rfc3339(*value)); return text;
    default: append_json_string(text, *value); return text;
  }
}

std::string json_of(const Columns& columns, const QueryResult::Row& row) {
  std::string text = "{";
  for (const Column& column : columns) {
    if (text.size() > 1) text += ", ";
    append_json_string(text, column.field);
    text += ": " + json_of(column, row.optional_text(column.field));
  }
  return text + "}";
}

}  // namespace pulse::console
