#include "html/timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "output/style.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr double kTimelineWidth = 600;
constexpr double kMinWidth = 2;  // an attempt that took no time is seen, too

std::string seconds_between(std::int64_t from, std::int64_t to) {
  return spell_seconds(static_cast<double>(std::max<std::int64_t>(to - from, 0)) / 1e6);
}

// Outcomes that a sweep records, and not the worker: pulse.recoveries() tells of the same outcomes.
bool is_recovery(std::string_view outcome) {
  constexpr std::array<std::string_view, 4> kTaken{"lost", "timed_out", "stalled", "interrupted"};
  return std::find(kTaken.begin(), kTaken.end(), outcome) != kTaken.end();
}

struct Axis {
  std::int64_t from;
  std::int64_t to;

  double x(std::int64_t moment) const {
    const auto length = static_cast<double>(std::max<std::int64_t>(to - from, 1));
    return kTimelineWidth * std::clamp(static_cast<double>(moment - from) / length, 0.0, 1.0);
  }
};

// The due time belongs to the last attempt, or to the next attempt.
Axis axis_of(std::optional<std::int64_t> due_at, const std::vector<AttemptSpan>& spans) {
  Axis axis{spans.front().claimed_at, spans.front().ended_at};
  for (const AttemptSpan& span : spans) {
    axis.from = std::min(axis.from, span.claimed_at);
    axis.to = std::max(axis.to, span.ended_at);
  }
  if (due_at) axis = {std::min(axis.from, *due_at), std::max(axis.to, *due_at)};
  return axis;
}

std::string whole(double number) { return std::to_string(std::llround(number)); }

const char* bar_css(std::string_view outcome) {
  switch (tint_of_state(outcome)) {
    case Tint::good: return "bar good";
    case Tint::busy: return "bar busy";
    case Tint::warning: return "bar warning";
    case Tint::bad: return "bar bad";
    default: return "bar";
  }
}

std::string told_attempt(const AttemptSpan& span) {
  return "attempt " + span.number + ' ' + span.outcome + " after " +
         seconds_between(span.claimed_at, span.ended_at);
}

Markup bar(const AttemptSpan& span, const Axis& axis) {
  const double width = std::max(axis.x(span.ended_at) - axis.x(span.claimed_at), kMinWidth);
  const double left = std::min(axis.x(span.claimed_at), kTimelineWidth - width);
  Markup shapes = element("rect",
                          {{"class", bar_css(span.outcome)},
                           {"x", whole(left)},
                           {"y", "16"},
                           {"width", whole(width)},
                           {"height", "22"}},
                          element("title", "", told_attempt(span)));
  if (is_recovery(span.outcome)) {
    const std::string x = whole(left + width);
    shapes += element("path", {{"class", "taken"}, {"d", "M" + x + " 14l-4-8h8z"}});
  }
  return shapes;
}

// How often attempts ended how, in the order in which that came up first.
Markup outcome_legend(const std::vector<AttemptSpan>& spans) {
  std::vector<std::string> order;
  std::map<std::string, int> counts;
  bool has_recovery = false;
  for (const AttemptSpan& span : spans) {
    if (counts[span.outcome]++ == 0) order.push_back(span.outcome);
    has_recovery = has_recovery || is_recovery(span.outcome);
  }
  Markup names;
  for (const std::string& outcome : order) {
    names += element("li", bar_css(outcome),
                     {outcome, " ", element("b", "", std::to_string(counts[outcome]))});
  }
  if (has_recovery) names += element("li", "taken", "taken from its worker");
  return element("ul", "legend", names);
}

}  // namespace

Markup attempt_bars(std::optional<std::int64_t> due_at, const std::vector<AttemptSpan>& spans) {
  if (spans.empty()) return {};
  const Axis axis = axis_of(due_at, spans);
  const std::string length = seconds_between(axis.from, axis.to);
  Markup shapes = element("path", {{"class", "base"}, {"d", "M0 38H600"}});
  std::string words = plural(static_cast<std::int64_t>(spans.size()), "attempt") + " in " + length;
  if (due_at) {
    const std::string x = whole(axis.x(*due_at));
    shapes +=
        element("path", {{"class", "due"}, {"d", "M" + x + " 4V44"}}, element("title", "", "due"));
    words += ", due after " + seconds_between(axis.from, *due_at);
  }
  for (const AttemptSpan& span : spans) {
    shapes += bar(span, axis);
    words +=
        ", " + told_attempt(span) + (is_recovery(span.outcome) ? ", taken from its worker" : "");
  }
  const Markup plot = element("svg",
                              {{"viewBox", "0 0 600 48"},
                               {"preserveAspectRatio", "none"},
                               {"role", "img"},
                               {"aria-label", words}},
                              shapes);
  const Markup ends =
      element("div", {{"class", "axis"}, {"aria-hidden", "true"}},
              {element("span", "", due_at == axis.from ? "due" : "claimed"),
               element("span", "", length + (due_at == axis.to ? ", then due" : ""))});
  return element("figure", "chart attempts",
                 {element("figcaption", "", outcome_legend(spans)), plot, ends});
}

}  // namespace pulse::console
