// Values of a list on a page, by the kind of their column.
#pragma once

#include "html/markup.hpp"
#include "output/columns.hpp"

namespace pulse::console {

// What a page knows while it spells values.
struct Spelling {
  std::int64_t now = 0;  // of the database, in microseconds
};

// Empty for NULL.
Markup value(const Column& column, const QueryResult::Cell& cell, const Spelling& spelling);

// How long ago; the time itself shows under the pointer.
Markup moment(const std::string& timestamp, const Spelling& spelling);

// The time itself.
Markup exact_time(const std::string& timestamp);

// A sentence of the server, whose times are shown as other times are: "due in 5 s" for "due at
// 2026-12-24 18:00:00+00".
Markup with_moments(const std::string& text, const Spelling& spelling);

// A value among facts, where a time stands beside the distance from now.
Markup fact(const Column& column, const QueryResult::Cell& cell, const Spelling& spelling);

// A state with its colour, which stands beside the word and never alone.
Markup state(std::string_view name);

// A rule of a schedule: "*/15 * * * *", or "every 10 min" for "every 00:10:00".
Markup rule_of(const std::string& rule);

// A bar that shows how much is done, or how full something is.
Markup meter(double part);

// Numbers stand at the right end of the column.
bool stands_right(Kind kind);

}  // namespace pulse::console
