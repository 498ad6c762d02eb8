#include "job/job_filter.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/loop/duration.hpp"
#include "base/postgres/array_literal.hpp"
#include "base/text/parse_number.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

std::optional<std::string> array_of(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  return array_literal(names);
}

constexpr std::string_view kMilliseconds = " milliseconds";

// "2 h" of an interval of interval_of().
std::string spelled(const std::string& interval) {
  if (!interval.ends_with(kMilliseconds)) return interval;
  return spell_seconds(std::strtod(interval.c_str(), nullptr) / 1000);
}

// An interval of interval_of(), made longer.
std::string longer(const std::string& interval, std::chrono::milliseconds more) {
  if (!interval.ends_with(kMilliseconds)) return interval + ' ' + interval_param(more);
  return interval_param(std::chrono::milliseconds(std::strtoll(interval.c_str(), nullptr, 10)) +
                        more);
}

}  // namespace

bool JobFilter::is_empty() const {
  return states.empty() && !task && !queue && !key && !error && !error_line && !older_than &&
         !newer_than;
}

std::string JobFilter::conditions() const {
  std::string text;
  const auto add = [&](const char* condition, const std::optional<std::string>& value) {
    if (value) text += (text.empty() ? "whose " : " and ") + (condition + *value);
  };
  add("task is ", task);
  add("queue is ", queue);
  add("key is ", key);
  add("error contains ", error);
  add("error is ", error_line);
  add("age is at least ", older_than ? std::optional(spelled(*older_than)) : std::nullopt);
  add("age is below ", newer_than ? std::optional(spelled(*newer_than)) : std::nullopt);
  return text;
}

JobFilter JobFilter::as_of(std::chrono::milliseconds ago) const {
  JobFilter filter = *this;
  filter.older_than = older_than ? longer(*older_than, ago) : interval_param(ago);
  if (newer_than) filter.newer_than = longer(*newer_than, ago);
  return filter;
}

Params JobFilter::params() const {
  return {array_of(states), task, queue, key, error, error_line, older_than, newer_than};
}

std::optional<std::string> interval_of(const std::string& duration) {
  if (duration.ends_with('d')) {
    const auto days = parse_number<int>(std::string_view(duration).substr(0, duration.size() - 1));
    if (!days || *days < 0) return std::nullopt;
    return std::to_string(*days) + " days";
  }
  const auto parsed = parse_duration(duration);
  if (!parsed) return std::nullopt;
  return interval_param(*parsed);
}

std::string filter_document(const JobFilter& filter,
                            const std::optional<std::vector<std::string>>& ids) {
  nlohmann::json document = nlohmann::json::object();
  if (ids) document["ids"] = *ids;
  if (!filter.states.empty()) document["states"] = filter.states;
  const auto add = [&](const char* key, const std::optional<std::string>& value) {
    if (value) document[key] = *value;
  };
  add("task", filter.task);
  add("queue", filter.queue);
  add("key", filter.key);
  add("error", filter.error);
  add("error_line", filter.error_line);
  add("older_than", filter.older_than);
  add("newer_than", filter.newer_than);
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pulse::console
