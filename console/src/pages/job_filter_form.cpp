#include "pages/job_filter_form.hpp"

#include <algorithm>
#include <array>

#include "pages/frame.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

constexpr std::array<const char*, 8> kStates{"ready",  "parked",      "running",   "completed",
                                             "failed", "quarantined", "cancelled", "expired"};
constexpr std::array<const char*, 6> kTexts{"task", "queue", "key", "error", "older", "newer"};

std::optional<std::string> given(const Form& query, const char* name) {
  const std::string& text = query.get(name);
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

std::optional<std::string> duration(const Form& query, const char* name) {
  const auto text = given(query, name);
  if (!text) return std::nullopt;
  auto interval = interval_of(*text);
  if (!interval) {
    throw Failed({422, "No duration", "'" + *text + "' is no duration", "",
                  "Durations are such as 30s, 10min, 2h or 3d."});
  }
  return interval;
}

bool has_state(const Form& query, std::string_view state) {
  const auto states = query.all("state");
  return std::find(states.begin(), states.end(), state) != states.end();
}

}  // namespace

JobFilter filter_of(const Form& query) {
  JobFilter filter;
  for (std::string& state : query.all("state")) {
    if (!state.empty()) filter.states.push_back(std::move(state));
  }
  filter.task = given(query, "task");
  filter.queue = given(query, "queue");
  filter.key = given(query, "key");
  filter.error = given(query, "error");
  filter.older_than = duration(query, "older");
  filter.newer_than = duration(query, "newer");
  return filter;
}

Url with_filter(Url url, const Form& query) {
  for (const std::string& state : query.all("state")) url = url.with("state", state);
  for (const char* name : kTexts) url = url.with(name, query.get(name));
  return url;
}

Markup hidden_filter(const Form& query) {
  Markup fields;
  for (const std::string& state : query.all("state")) fields += hidden_field("state", state);
  for (const char* name : kTexts) {
    if (!query.get(name).empty()) fields += hidden_field(name, query.get(name));
  }
  return fields;
}

Markup filter_form(const Form& query, bool with_errors) {
  Markup states;
  for (const char* state : kStates) {
    states += element("label", "chip",
                      {element("input", {{"type", "checkbox"},
                                         {"name", "state"},
                                         {"value", state},
                                         {"checked", mark(has_state(query, state))}}),
                       element("span", "", state)});
  }
  Markup texts{field("Task", "task", query.get("task")),
               field("Queue", "queue", query.get("queue")), field("Key", "key", query.get("key"))};
  if (with_errors) texts += field("Error contains", "error", query.get("error"));
  texts += field("Older than", "older", query.get("older"), "2h, 3d");
  texts += field("Newer than", "newer", query.get("newer"), "10min, 1d");
  return element(
      "form",
      {{"class", "filter"}, {"method", "get"}, {"action", Url("/jobs")}, {"role", "search"}},
      {element("fieldset", "chips", {element("legend", "", "State"), states}),
       element("div", "fields", texts),
       element("div", "answer",
               {element("button", {{"class", "primary"}, {"type", "submit"}}, "Show"),
                button(Url("/jobs"), "Clear")})});
}

}  // namespace pulse::console
