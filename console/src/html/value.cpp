#include "html/value.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>

#include "base/text/inert.hpp"
#include "html/moment.hpp"
#include "output/style.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

const char* css_of(Tint tint) {
  switch (tint) {
    case Tint::good: return "state good";
    case Tint::busy: return "state busy";
    case Tint::warning: return "state warning";
    case Tint::bad: return "state bad";
    default: return "state";
  }
}

Markup names(const std::string& array) {
  Markup list;
  for (const std::string& name : json_strings(array)) {
    if (!list.empty()) list += " ";
    list += element("span", "name", name);
  }
  return list;
}

// At most so many bytes, and whole characters.
std::string cut(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes) + "…";
}

}  // namespace

Markup state(std::string_view name) { return element("span", css_of(tint_of_state(name)), name); }

Markup moment(const std::string& timestamp, const Spelling& spelling) {
  const auto microseconds = microseconds_of(timestamp);
  if (!microseconds) return timestamp;  // infinity
  return element("time", {{"datetime", rfc3339(timestamp)}, {"title", timestamp}},
                 spell_distance(*microseconds, spelling.now));
}

Markup exact_time(const std::string& timestamp) {
  if (!microseconds_of(timestamp)) return timestamp;  // infinity
  return element("time", {{"class", "exact"}, {"datetime", rfc3339(timestamp)}},
                 spell_time(timestamp));
}

Markup with_moments(const std::string& text, const Spelling& spelling) {
  static const std::regex kTime(
      R"((?:at )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?[+-]\d\d(:\d\d)*))");
  Markup told;
  auto from = text.cbegin();
  for (std::sregex_iterator found(from, text.cend(), kTime), end; found != end; ++found) {
    told += {std::string(from, (*found)[0].first), moment((*found)[1].str(), spelling)};
    from = (*found)[0].second;
  }
  return told += std::string(from, text.cend());
}

Markup fact(const Column& column, const QueryResult::Cell& cell, const Spelling& spelling) {
  Markup content = value(column, cell, spelling);
  if (column.kind == Kind::time && cell && microseconds_of(*cell)) content += exact_time(*cell);
  return content;
}

Markup rule_of(const std::string& rule) {
  constexpr std::size_t kMaxWhole = 24;  // a longer rule may be broken between its fields
  int hours = 0;
  int minutes = 0;
  double seconds = 0;
  int length = 0;
  std::string text = rule;
  if (std::sscanf(rule.c_str(), "every %d:%2d:%lf%n", &hours, &minutes, &seconds, &length) == 3 &&
      static_cast<std::size_t>(length) == rule.size()) {
    text = "every " + spell_seconds(hours * 3600.0 + minutes * 60 + seconds);
  }
  return element("span", text.size() <= kMaxWhole ? "whole" : "", text);
}

Markup meter(double part) {
  const double bounded = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0;
  const std::string percent = std::to_string(static_cast<int>(std::floor(bounded * 100)));
  return element("span", "meter",
                 {element("progress", {{"max", "100"}, {"value", percent}}, percent + " %"),
                  element("span", "", percent + " %")});
}

Markup value(const Column& column, const QueryResult::Cell& cell, const Spelling& spelling) {
  if (!cell) return {};
  switch (column.kind) {
    case Kind::state: return state(*cell);
    case Kind::count: return spell_count(*cell);
    case Kind::seconds: return spell_known_seconds(*cell);
    case Kind::part: return meter(std::strtod(cell->c_str(), nullptr));
    case Kind::time: return moment(*cell, spelling);
    case Kind::boolean: return *cell == "t" ? "yes" : "";
    case Kind::names: return names(*cell);
    default: break;
  }
  constexpr std::size_t kMaxCell = 160;
  constexpr std::size_t kMaxTitle = 2000;
  if (cell->size() <= kMaxCell) return visible(*cell);
  return element("span", {{"title", cut(*cell, kMaxTitle)}}, cut(*cell, kMaxCell));
}

bool stands_right(Kind kind) {
  return kind == Kind::id || kind == Kind::count || kind == Kind::number || kind == Kind::seconds;
}

}  // namespace pulse::console
