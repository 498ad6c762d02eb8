#include "job/job_filter.hpp"

#include <nlohmann/json.hpp>

#include "database/array_literal.hpp"
#include "loop/duration.hpp"
#include "text/parse_number.hpp"

namespace pulse::console {
namespace {

std::optional<std::string> array_of(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  return array_literal(names);
}

}  // namespace

bool JobFilter::is_empty() const {
  return states.empty() && !task && !queue && !key && !error && !older_than && !newer_than;
}

Params JobFilter::params() const {
  return {array_of(states), task, queue, key, error, older_than, newer_than};
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

std::string filter_document(const JobFilter& filter, const std::vector<std::string>& ids) {
  nlohmann::json document = nlohmann::json::object();
  if (!ids.empty()) document["ids"] = ids;
  if (!filter.states.empty()) document["states"] = filter.states;
  const auto add = [&](const char* key, const std::optional<std::string>& value) {
    if (value) document[key] = *value;
  };
  add("task", filter.task);
  add("queue", filter.queue);
  add("key", filter.key);
  add("error", filter.error);
  add("older_than", filter.older_than);
  add("newer_than", filter.newer_than);
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pulse::console
