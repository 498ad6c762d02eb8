// Changes of jobs: a look at which, the question, the steps, and the way back. Each is an operation
// of the database, with the name of the token in it.
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "database/array_literal.hpp"
#include "job/job_search.hpp"
#include "pages/job_filter_form.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kPreview =
    "SELECT jobs, is_exact, (SELECT coalesce(json_agg(s.id::text), '[]') FROM"
    " unnest(sample_ids[1:10]) AS s (id)) AS sample FROM pulse.preview_operation($1, $2::json)";

constexpr const char* kSample =
    "SELECT i.id, g.state, g.job ->> 'identifier' AS identifier,"
    " g.job ->> 'queue_name' AS queue_name, g.job ->> 'attempts' AS attempts"
    " FROM unnest($1::bigint[]) AS i (id), pulse.read_job(i.id) AS g";

const Columns kSampleColumns{
    {"job", "id", Kind::id},
    {"task", "identifier"},
    {"state", "state", Kind::state},
    {"queue", "queue_name"},
    {"attempts", "attempts", Kind::number},
};

constexpr const char* kStart = "SELECT id FROM pulse.start_operation($1, $2::json, $3::json, $4)";
constexpr const char* kUndo = "SELECT id FROM pulse.undo_operation($1::bigint, $2)";
constexpr const char* kStop = "SELECT FROM pulse.stop_operation($1::bigint)";
constexpr const char* kStep = "SELECT state FROM pulse.run_operation($1::bigint, 1000)";
constexpr const char* kOperation =
    "SELECT id, action, (SELECT string_agg(s.value, ', ') FROM json_each_text(subject) AS s)"
    " AS subject, state, changed, skipped, undoes, undone_by, actor, role, created_at, ended_at"
    " FROM pulse.operations WHERE id = $1::bigint";

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
  // Of jobs that are named by id: every state that the action may change.
  std::vector<std::string> states_by_id;
  std::vector<Argument> arguments;
};

const std::array<Action, 4>& known_actions() {
  static const std::array<Action, 4> kActions{{
      {"retry",
       "Retry",
       "They run again, with all their attempts before them.",
       "primary",
       {"failed", "quarantined", "cancelled", "expired"},
       {}},
      {"cancel",
       "Cancel",
       "Waiting jobs end as cancelled; running ones are asked to end.",
       "danger",
       {"ready", "parked", "running"},
       {{"reason", "Reason", "kept with the jobs"}}},
      {"fail",
       "Fail",
       "Waiting jobs end as failed.",
       "danger",
       {"ready", "parked"},
       {{"error", "Error", "kept with the jobs"}}},
      {"reschedule",
       "Reschedule",
       "They run at another time, or in another order. What is left empty stays as it is.",
       "primary",
       {"ready", "parked"},
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

std::string filter_for(const Request& request, const Action& action) {
  JobFilter filter = filter_of(request.query);
  const std::vector<std::string> ids = request.query.all("id");
  if (!ids.empty() && filter.states.empty()) filter.states = action.states_by_id;
  return filter_document(filter, ids);
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

Markup question(const Request& request, const Action& action, const QueryResult::Row& preview) {
  const bool is_exact = preview.text("is_exact") == "t";
  const std::string jobs = plural(preview.integer("jobs"), "job");
  Markup content =
      element("h1", "", std::string(action.title) + (is_exact ? " " : " at least ") + jobs + "?");
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
  const QueryResult preview =
      request.database().query(kPreview, {action.name, filter_for(request, action)});
  const std::int64_t jobs = preview[0].integer("jobs");
  if (jobs == 0 && preview[0].text("is_exact") == "t") {
    const Markup content{
        element("h1", "", {"No job to ", action.name}),
        element("p", "",
                is_by_id(request) ? "The jobs have moved on, or this cannot be done "
                                    "in their state."
                                  : "No job that meets the filter is in a state for it."),
        element("div", "answer", button(way_back(request), "Back"))};
    return shown_page(request, {action.title, "/jobs", element("div", "question", content)});
  }
  const std::vector<std::string> ids = json_strings(preview[0].text("sample"));
  const QueryResult sample = request.database().query(kSample, {array_literal(ids)});
  const TableLook look{{{"id", "/jobs", nullptr, "id"}}, {}, {}, "They have moved on."};
  Markup content = element("div", "question", question(request, action, preview[0]));
  content += element(
      "section", "",
      {element("h2", "",
               jobs > static_cast<std::int64_t>(ids.size()) ? "The first of them" : "Which"),
       html_table(kSampleColumns, sample, look, spelling_of(request), false)});
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
  const std::string id = request.database()
                             .query(kStart, {action.name, filter_for(request, action),
                                             arguments.dump(), actor_of(request)})[0]
                             .text("id");
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
  QueryResult rows = request.database().query(kOperation, {request.parameter("id")});
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
