#include "pages/job_filter_form.hpp"

#include <algorithm>
#include <array>

#include "base/http/status.hpp"
#include "html/value.hpp"
#include "pages/frame.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

constexpr std::array<const char*, 8> kStates{"ready",  "parked",      "running",   "completed",
                                             "failed", "quarantined", "cancelled", "expired"};
constexpr std::array<const char*, 7> kTexts{"task", "queue", "key",  "error",
                                            "line", "older", "newer"};

std::optional<std::string> given(const Form& query, const char* name) {
  const std::string& text = query.get(name);
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

std::optional<std::string> duration(const Form& query, const char* name) {
  const auto text = given(query, name);
  if (!text) return std::nullopt;
  auto interval = interval_of(*text);
  if (!interval) {
    refuse(http_status::kUnprocessableContent, "'" + *text + "' is no duration",
           "Durations are such as 30s, 10min, 2h or 3d.");
  }
  return interval;
}

bool has_state(const Form& query, std::string_view state) {
  const auto states = query.all("state");
  return std::find(states.begin(), states.end(), state) != states.end();
}

// Whether an action changes jobs of each state that the filter names.
bool may_change_all(const ActionStates& actions, const char* action, const Form& query) {
  const auto states = query.all("state");
  return std::all_of(states.begin(), states.end(),
                     [&](const std::string& state) { return actions.may_change(action, state); });
}

// Whether the list may have a job that the action changes.
bool may_change_some(const ActionStates& actions, const char* action, const Form& query) {
  const auto states = query.all("state");
  return states.empty() || std::any_of(states.begin(), states.end(), [&](const std::string& state) {
           return actions.may_change(action, state);
         });
}

// The actions on the chosen jobs, or on all jobs that meet the filter. The form says which: a
// request with neither changes nothing.
Markup bulk_actions(const ActionStates& actions, const Form& query) {
  const auto chosen = [&](const char* action, const char* name) -> Markup {
    if (!may_change_some(actions, action, query)) return {};
    return element("button", {{"class", "small button"}, {"name", "action"}, {"value", action}},
                   name);
  };
  const auto all = [&](const char* action, const char* name) -> Markup {
    if (!may_change_all(actions, action, query)) return {};
    const Url url = Url("/operations/new").with("action", action).with("all", "1");
    return button(with_filter(url, query), name, "small button");
  };
  // No change of all jobs knows due times.
  const Markup of_all = query.get("due").empty()
                            ? Markup{all("retry", "Retry all"), all("cancel", "Cancel all"),
                                     all("reschedule", "Reschedule all")}
                            : Markup();
  return element(
      "div", "bulk",
      {hidden_field("chosen", "1"), hidden_filter(query),
       element("div", "",
               {element("span", "", "The chosen:"), chosen("retry", "Retry"),
                chosen("cancel", "Cancel")}),
       of_all.empty()
           ? Markup()
           : element("div", "of-all", {element("span", "", "All that meet the filter:"), of_all})});
}

// The states of a tab, in the form of an address.
Url tab_address(const StateCount& tab, const Form& query) {
  Url url("/jobs");
  if (tab.name == "due") {
    url = url.with("state", "ready").with("due", "now");
  } else if (tab.name == "scheduled") {
    url = url.with("state", "ready").with("state", "parked").with("due", "later");
  } else {
    url = url.with("state", tab.name);
  }
  for (const char* name : kTexts) url = url.with(name, query.get(name));
  return url;
}

bool is_tab_of(const StateCount& tab, const Form& query) {
  const auto states = query.all("state");
  const std::string& due = query.get("due");
  if (tab.name == "due") return due == "now";
  if (tab.name == "scheduled") return due == "later";
  return due.empty() && states.size() == 1 && states[0] == tab.name;
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
  filter.error_line = given(query, "line");
  filter.older_than = duration(query, "older");
  filter.newer_than = duration(query, "newer");
  return filter;
}

Url with_filter(Url url, const Form& query) {
  for (const std::string& state : query.all("state")) url = url.with("state", state);
  for (const char* name : kTexts) url = url.with(name, query.get(name));
  return url.with("due", query.get("due"));
}

Markup hidden_filter(const Form& query) {
  Markup fields;
  for (const std::string& state : query.all("state")) fields += hidden_field("state", state);
  for (const char* name : kTexts) {
    if (!query.get(name).empty()) fields += hidden_field(name, query.get(name));
  }
  return fields;
}

bool may_change_chosen(const ActionStates& actions, const Form& query) {
  return may_change_some(actions, "retry", query) || may_change_some(actions, "cancel", query);
}

Markup bulk_form(const ActionStates& actions, const Form& query, const Markup& list) {
  return element("form", {{"method", "get"}, {"action", Url("/operations/new")}},
                 {bulk_actions(actions, query), list});
}

Markup state_tabs(const Form& query, const std::vector<StateCount>& counts, std::size_t listed) {
  Url all("/jobs");
  for (const char* name : kTexts) all = all.with(name, query.get(name));
  const auto entry = [](const Url& url, const Markup& content, bool is_here) {
    return element(
        "li", "",
        element("a",
                {{"href", url},
                 {"aria-current", is_here ? std::optional<std::string>("true") : std::nullopt}},
                content));
  };
  Markup tabs = entry(all, "all", query.all("state").empty());
  for (StateCount tab : counts) {
    // The list may have read further than the count.
    if (is_tab_of(tab, query) && !tab.is_exact) {
      tab.jobs = std::max(tab.jobs, static_cast<std::int64_t>(listed));
    }
    tabs += entry(tab_address(tab, query),
                  {state(tab.name), " ", element("b", tab.jobs == 0 ? "zero" : "", tab.text())},
                  is_tab_of(tab, query));
  }
  return element("nav", {{"class", "tabs"}, {"aria-label", "States"}}, element("ul", "", tabs));
}

void refuse_hidden_errors(const Request& request, const JobFilter& filter) {
  if ((filter.error || filter.error_line) && !request.access.sees_payloads()) {
    refuse(http_status::kForbidden, "errors are for clients with a token",
           "Sign in, or filter by something else.");
  }
}

Markup filter_section(const Form& query, bool with_errors, const Path& path) {
  JobFilter conditions = filter_of(query);
  conditions.states.clear();
  return element("details", {{"class", "filters"}, {"open", present_if(!conditions.is_empty())}},
                 {element("summary", "", "Filter"), filter_form(query, with_errors, path)});
}

Markup filter_form(const Form& query, bool with_errors, const Path& path) {
  Markup states;
  for (const char* state : kStates) {
    states += element("label", "chip",
                      {element("input", {{"type", "checkbox"},
                                         {"name", "state"},
                                         {"value", state},
                                         {"checked", present_if(has_state(query, state))}}),
                       element("span", "", state)});
  }
  Markup texts{field("Task", "task", query.get("task")),
               field("Queue", "queue", query.get("queue")), field("Key", "key", query.get("key"))};
  if (with_errors) texts += field("Error contains", "error", query.get("error"));
  if (!query.get("line").empty()) texts += field("Error is", "line", query.get("line"));
  texts += field("Older than", "older", query.get("older"), "2h, 3d");
  texts += field("Newer than", "newer", query.get("newer"), "10min, 1d");
  return element(
      "form", {{"class", "filter"}, {"method", "get"}, {"action", Url(path)}, {"role", "search"}},
      {path.text() == "/jobs"
           ? element("fieldset", "chips", {element("legend", "", "State"), states})
           : Markup(),
       element("div", "fields", texts),
       element("div", "answer",
               {element("button", {{"class", "primary"}, {"type", "submit"}}, "Show"),
                button(Url(path), "Clear")})});
}

}  // namespace pulse::console
