// Changes of jobs: a look at which, the question, the steps, and the way back. Each is an operation
// of the database, with the name of the token in it.
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "job/job_change.hpp"
#include "pages/job_filter_form.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kUndo = "SELECT id FROM pulse.undo_operation($1::bigint, $2)";
constexpr const char* kStop = "SELECT FROM pulse.stop_operation($1::bigint)";
constexpr const char* kStep = "SELECT state FROM pulse.run_operation($1::bigint, 1000)";

struct Argument {
  const char* name;
  const char* label;
  const char* hint;
};

struct Action {
  const char* name;
  const char* title;
  const char* effect;
  const char* css;  // of what agrees
  std::vector<Argument> arguments;
};

const std::array<Action, 4>& known_actions() {
  static const std::array<Action, 4> kActions{{
      {"retry", "Retry", "They run again, with all their attempts before them.", "primary", {}},
      {"cancel",
       "Cancel",
       "Waiting jobs end as cancelled; running ones are asked to end.",
       "danger",
       {{"reason", "Reason", "kept with the jobs"}}},
      {"fail",
       "Fail",
       "Waiting jobs end as failed.",
       "danger",
       {{"error", "Error", "kept with the jobs"}}},
      {"reschedule",
       "Reschedule",
       "They run at another time, or in another order. What is left empty stays as it is.",
       "primary",
       {{"run_at", "Due at", "as 2026-12-24 18:00+01"},
        {"priority", "Priority", "a lower number is claimed first"},
        {"max_attempts", "Attempts in all", ""}}},
  }};
  return kActions;
}

const Action& action_of(const Request& request) {
  const std::string& name = request.query.get("action");
  for (const Action& action : known_actions()) {
    if (name == action.name) return action;
  }
  throw Failed({404, "Not Found", "There is no such action", "", ""});
}

bool is_by_id(const Request& request) { return request.query.find("id").has_value(); }

JobChange change_of(const Request& request, const Action& action) {
  return {action.name, filter_of(request.query), request.query.all("id")};
}

Url address_of(const Request& request, const Action& action) {
  Url url = with_filter(Url("/operations/new").with("action", action.name), request.query);
  for (const std::string& id : request.query.all("id")) url = url.with("id", id);
  return url;
}

Url way_back(const Request& request) {
  const std::vector<std::string> ids = request.query.all("id");
  if (ids.size() == 1) return Url("/jobs").part(ids[0]);
  return with_filter(Url("/jobs"), request.query);
}

Markup question(const Request& request, const Action& action, const ChangePreview& preview) {
  Markup content = element("h1", "", preview.question(action.title));
  content += element("p", "", action.effect);
  Markup fields;
  for (const Argument& argument : action.arguments) {
    fields += field(argument.label, argument.name, "", argument.hint);
  }
  if (!fields.empty()) content += element("div", "fields", fields);
  content += answer(action.title, action.css, way_back(request));
  return form(request, address_of(request, action), content);
}

Response ask_operation(const Request& request) {
  const Action& action = action_of(request);
  const ChangePreview preview = preview_change(request.database(), change_of(request, action));
  if (preview.is_of_none()) {
    const Markup content{
        element("h1", "", {"No job to ", action.name}),
        element("p", "",
                is_by_id(request) ? "The jobs have moved on, or this cannot be done "
                                    "in their state."
                                  : "No job that meets the filter is in a state for it."),
        element("div", "answer", button(way_back(request), "Back"))};
    return shown_page(request, {action.title, "/jobs", element("div", "question", content)});
  }
  const QueryResult sample = read_sample(request.database(), preview);
  const TableLook look{{{"id", "/jobs", nullptr, "id"}}, {}, {}, "They have moved on."};
  Markup content = element("div", "question", question(request, action, preview));
  content += element("section", "",
                     {element("h2", "",
                              preview.jobs > static_cast<std::int64_t>(preview.sample_ids.size())
                                  ? "The first of them"
                                  : "Which"),
                      html_table(sample_columns(), sample, look, spelling_of(request), false)});
  return shown_page(request, {action.title, "/jobs", content});
}

// Steps for a moment; the page of the operation goes on with what is left.
void run_for_a_moment(Database& database, const std::string& id) {
  constexpr auto kMoment = std::chrono::milliseconds(700);
  const auto start = std::chrono::steady_clock::now();
  while (database.query(kStep, {id})[0].text("state") == "running" &&
         std::chrono::steady_clock::now() - start < kMoment) {
  }
}

Response operation_at(const std::string& id) {
  return see_other(Url("/operations").part(id).text());
}

std::string actor_of(const Request& request) { return request.access.token; }

Response start(const Request& request) {
  const Action& action = action_of(request);
  nlohmann::json arguments = nlohmann::json::object();
  for (const Argument& argument : action.arguments) {
    const std::string& text = request.form.get(argument.name);
    if (!text.empty()) arguments[argument.name] = text;
  }
  const std::string id = start_change(request.database(), change_of(request, action),
                                      arguments.dump(), actor_of(request));
  run_for_a_moment(request.database(), id);
  return operation_at(id);
}

Response go_on(const Request& request) {
  run_for_a_moment(request.database(), request.parameter("id"));
  return operation_at(request.parameter("id"));
}

Response stop_steps(const Request& request) {
  request.database().query(kStop, {request.parameter("id")});
  return operation_at(request.parameter("id"));
}

Response undo_steps(const Request& request) {
  const std::string id =
      request.database().query(kUndo, {request.parameter("id"), actor_of(request)})[0].text("id");
  run_for_a_moment(request.database(), id);
  return operation_at(id);
}

QueryResult read_operation(const Request& request) {
  QueryResult rows = request.database().query(operation_list().one, {request.parameter("id")});
  if (rows.empty()) {
    throw Failed({404, "Not Found", "operation " + request.parameter("id") + " is unknown", "",
                  "Operations are on record as long as pulse.keep_attempts."});
  }
  return rows;
}

Response ask_undo(const Request& request) {
  const QueryResult rows = read_operation(request);
  const std::string& id = rows[0].text("id");
  const std::string jobs = plural(rows[0].integer("changed"), "job");
  const Url self = Url("/operations").part(id);
  const Markup content =
      form(request, self.part("undo"),
           {element("h1", "", "Undo the " + rows[0].text("action") + " of " + jobs + "?"),
            element("p", "", "Jobs that have run or changed since stay as they are."),
            answer("Undo", "danger", self)});
  return shown_page(request, {"Undo", "/operations", element("div", "question", content)});
}

Markup operation_facts(const QueryResult::Row& row, const Spelling& spelling) {
  Markup list;
  for (const Column& column : operation_list().columns) {
    Markup content = value(column, row.optional_text(column.field), spelling);
    if (content.empty() || column.field == "id") continue;
    const bool is_operation = column.field == "undoes" || column.field == "undone_by";
    if (is_operation) content = link(Url("/operations").part(row.text(column.field)), content);
    list += element("div", "", {element("dt", "", column.title), element("dd", "", content)});
  }
  return element("dl", "facts", list);
}

// With a script, what runs goes on by itself; without one, an operator presses the button.
Markup operation_actions(const Request& request, const QueryResult::Row& row) {
  const Url self = Url("/operations").part(row.text("id"));
  const auto post = [&](const char* what, const char* name, const char* css, bool is_automatic) {
    return element(
        "form",
        {{"method", "post"}, {"action", self.part(what)}, {"data-automatic", mark(is_automatic)}},
        {element("input", {{"type", "hidden"}, {"name", "csrf"}, {"value", request.access.csrf}}),
         element("button", {{"class", css}, {"type", "submit"}}, name)});
  };
  if (row.text("state") == "running") {
    return {post("run", "Go on", "primary", true), post("stop", "Stop", "button", false)};
  }
  const bool may_be_undone =
      row.is_null("undoes") && row.is_null("undone_by") && row.integer("changed") > 0;
  return may_be_undone ? button(self.part("undo"), "Undo …") : Markup();
}

Response operation_page(const Request& request) {
  const QueryResult rows = read_operation(request);
  const auto row = rows[0];
  const Markup title{"Operation ", row.text("id"), " ", state(row.text("state"))};
  const std::string of = row.optional_text("subject").value_or(
      "of " + plural(row.integer("changed"), "job") +
      (row.integer("skipped") > 0 ? ", " + spell_count(row.text("skipped")) + " left alone" : ""));
  const std::string lead = row.text("action") + ' ' + of;
  return shown_page(
      request,
      {"Operation " + row.text("id"),
       "/operations",
       {page_heading(title, request.access.is_operator ? operation_actions(request, row) : Markup(),
                     lead),
        operation_facts(row, spelling_of(request))}});
}

}  // namespace

void add_operation_pages(Router& router) {
  router.add("GET", "/operations/new", Need::act, ask_operation);
  router.add("POST", "/operations/new", Need::act, start);
  router.add("GET", "/operations/{id}", Need::look, operation_page);
  router.add("GET", "/operations/{id}/undo", Need::act, ask_undo);
  router.add("POST", "/operations/{id}/undo", Need::act, undo_steps);
  router.add("POST", "/operations/{id}/run", Need::act, go_on);
  router.add("POST", "/operations/{id}/stop", Need::act, stop_steps);
}

}  // namespace pulse::console
