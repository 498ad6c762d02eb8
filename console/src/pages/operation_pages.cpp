// Changes of jobs: a preview of the jobs, the question, the steps, and the way back. Each change is
// an operation of the database, with the name of the token.
#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/http/status.hpp"
#include "base/text/parse_number.hpp"
#include "job/job_change.hpp"
#include "job/operation_steps.hpp"
#include "pages/job_filter_form.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "serve/problem.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kUndo = "SELECT id FROM pulse.undo_operation($1::bigint, $2)";
// So long a request runs steps; the page of the operation goes on with the remaining steps.
constexpr std::chrono::milliseconds kMoment(700);
constexpr const char* kStopOperation = "SELECT FROM pulse.stop_operation($1::bigint)";

struct Argument {
  const char* name;
  const char* label;
  const char* hint;
};

struct PageAction {
  const char* name;
  const char* title;
  const char* effect;
  bool is_grave;
  std::vector<Argument> arguments;
};

const std::array<PageAction, 4>& known_actions() {
  static const std::array<PageAction, 4> kActions{{
      {"retry", "Retry", "They run again, with all their attempts before them.", false, {}},
      {"cancel",
       "Cancel",
       "Waiting jobs end as cancelled; running ones are asked to end.",
       true,
       {{"reason", "Reason", "kept with the jobs"}}},
      {"fail",
       "Fail",
       "Waiting jobs end as failed.",
       true,
       {{"error", "Error", "kept with the jobs"}}},
      {"reschedule",
       "Reschedule",
       "They run at another time, or in another order. What is left empty stays as it is.",
       false,
       {{"run_at", "Due at", "as 2026-12-24 18:00+01"},
        {"priority", "Priority", "a lower number is claimed first"},
        {"max_attempts", "Attempts in all", ""}}},
  }};
  return kActions;
}

const PageAction& action_of(const Request& request) {
  const std::string& name = request.query.get("action");
  for (const PageAction& action : known_actions()) {
    if (name == action.name) return action;
  }
  refuse(http_status::kNotFound, "there is no such action");
}

// A visitor agrees to a change of more jobs by typing their number.
constexpr std::int64_t kMaxUntyped = 1000;

bool has_flag(const Request& request, const char* name) { return request.query.get(name) == "1"; }

// With `chosen` the filter is the filter of the list in which the jobs were chosen, and leads back
// there.
JobChange change_of(const Request& request, const PageAction& action) {
  JobChange change{action.name, {}, request.query.all("id"), has_flag(request, "all")};
  const bool is_chosen = has_flag(request, "chosen");
  if (!is_chosen) change.filter = filter_of(request.query);
  if (change.is_all && (is_chosen || change.is_by_id())) {
    refuse(http_status::kUnprocessableContent, "the request says all jobs and names some, too",
           "Leave out all=1, or the ids and chosen=1.");
  }
  if (change.is_all && !request.query.get("due").empty()) {
    refuse(http_status::kUnprocessableContent, "no change of all jobs knows due times",
           "Choose jobs in the list, or leave out due=.");
  }
  if (!change.is_all && !is_chosen && !change.is_by_id()) {
    refuse(http_status::kUnprocessableContent, "the request does not say which jobs",
           "Choose jobs in a list; all=1 means each job that meets the filter.");
  }
  return change;
}

Url address_of(const Request& request, const PageAction& action) {
  Url url = with_filter(Url("/operations/new").with("action", action.name), request.query);
  for (const char* name : {"all", "chosen"}) url = url.with(name, request.query.get(name));
  for (const std::string& id : request.query.all("id")) url = url.with("id", id);
  return url;
}

Url way_back(const Request& request) {
  const std::vector<std::string> ids = request.query.all("id");
  if (ids.size() == 1 && !has_flag(request, "chosen")) return Url("/jobs").part(ids[0]);
  return with_filter(Url("/jobs"), request.query);
}

// A page that says why nothing is changed.
Response refusal(const Request& request, const PageAction& action, const std::string& title,
                 const char* reason) {
  const Markup content{element("h1", "", title), element("p", "", reason),
                       element("div", "answer", button(way_back(request), "Back"))};
  return shown_page(request, {action.title, "/jobs", element("div", "question", content),
                              http_status::kUnprocessableContent});
}

Response no_job(const Request& request, const PageAction& action, const JobChange& change) {
  return refusal(request, action, std::string("No job to ") + action.name,
                 change.is_by_id()
                     ? "The jobs have moved on, or this cannot be done in their state."
                     : "No job that meets the filter is in a state for it.");
}

// Makes the visitor agree to a change of many jobs by their number.
Markup number_field(const ChangePreview& preview) {
  if (preview.jobs <= kMaxUntyped) return {};
  const std::string number = std::to_string(preview.jobs);
  return {hidden_field("asked", number),
          element("div", "fields",
                  field("Number of jobs", "number", "",
                        ("type " + spell_count(number) + " to agree").c_str()))};
}

Markup question(const Request& request, const PageAction& action, const JobChange& change,
                const ChangePreview& preview, const std::string& asked_at, const char* trouble) {
  const std::string title(action.title);
  Markup content =
      element("h1", "", title + ' ' + subject(change, preview, request.session->name()) + '?');
  content += element("p", "", action.effect);
  if (*trouble != '\0') content += notice("warning", trouble);
  Markup fields;
  for (const Argument& argument : action.arguments) {
    fields += field(argument.label, argument.name, request.form.get(argument.name), argument.hint);
  }
  if (!fields.empty()) content += element("div", "fields", fields);
  content += number_field(preview);
  content += hidden_field("asked_at", asked_at);
  content += answers({title + ' ' + plural(preview.jobs, "job"), action.is_grave, way_back(request),
                      action.is_grave ? (preview.jobs == 1 ? "Keep it" : "Keep them") : "Back"});
  return form(request, address_of(request, action), content);
}

Response question_page(const Request& request, const PageAction& action, const JobChange& change,
                       const ChangePreview& preview, const std::string& asked_at,
                       const char* trouble = "") {
  const QueryResult sample = read_sample(request.database(), preview);
  const TableLayout layout{{{"id", "/jobs", nullptr, "id"}},
                           {},
                           {},
                           "They have moved on.",
                           nullptr,
                           nullptr,
                           "table jobs sample"};
  Markup content =
      element("div", "question", question(request, action, change, preview, asked_at, trouble));
  content += element("section", "",
                     {element("h2", "",
                              preview.jobs > static_cast<std::int64_t>(preview.sample_ids.size())
                                  ? "The first of them"
                                  : "Which"),
                      html_table(sample_columns(), sample, layout, spelling_of(request), false)});
  return shown_page(request, {action.title, "/jobs", content,
                              *trouble == '\0' ? 200U : http_status::kUnprocessableContent});
}

constexpr const char* kNoneChosen =
    "No box was ticked, so nothing is changed. Tick the boxes of jobs first; \"all\" is a button "
    "of "
    "its own.";

Response ask_operation(const Request& request) {
  const PageAction& action = action_of(request);
  const JobChange change = change_of(request, action);
  if (!change.says_which()) return refusal(request, action, "No job is chosen", kNoneChosen);
  const std::string asked_at = std::to_string(spelling_of(request).now);
  const ChangePreview preview = preview_change(request.database(), change);
  if (preview.is_of_none()) return no_job(request, action, change);
  return question_page(request, action, change, preview, asked_at);
}

// The change as the question named it: jobs that were added since are left alone.
JobChange change_as_asked(const Request& request, const PageAction& action) {
  JobChange change = change_of(request, action);
  const auto asked_at = parse_number<std::int64_t>(request.form.get("asked_at"));
  if (change.is_by_id() || !change.says_which() || !asked_at) return change;
  const std::chrono::microseconds ago(
      std::max<std::int64_t>(spelling_of(request).now - *asked_at, 0));
  change.filter = change.filter.as_of(std::chrono::duration_cast<std::chrono::milliseconds>(ago));
  return change;
}

// Why the page asks again about a change of so many jobs; empty: the visitor has agreed.
const char* objection(const Request& request, const ChangePreview& preview) {
  const std::string& asked = request.form.get("asked");
  if (preview.jobs <= kMaxUntyped && asked.empty()) return "";
  std::string typed = request.form.get("number");
  std::erase_if(typed, [](char c) { return c == ',' || c == ' '; });
  const auto number = parse_number<std::int64_t>(asked);
  if (!number || typed != asked) return "Nothing was changed: the number was another.";
  if (preview.jobs > *number) return "Nothing was changed: the number of jobs has grown since.";
  return "";
}

Response operation_at(const std::string& id) {
  return see_other(Url("/operations").part(id).text());
}

std::string actor_of(const Request& request) { return request.access.token; }

Response start(const Request& request) {
  const PageAction& action = action_of(request);
  const JobChange change = change_as_asked(request, action);
  if (!change.says_which()) return refusal(request, action, "No job is chosen", kNoneChosen);
  const ChangePreview preview = preview_change(request.database(), change);
  if (preview.is_of_none()) return no_job(request, action, change);
  const char* const trouble = objection(request, preview);
  if (*trouble != '\0') {
    const std::string asked_at = std::to_string(spelling_of(request).now);
    const JobChange again = change_of(request, action);
    return question_page(request, action, again, preview_change(request.database(), again),
                         asked_at, trouble);
  }
  nlohmann::json arguments = nlohmann::json::object();
  for (const Argument& argument : action.arguments) {
    const std::string& text = request.form.get(argument.name);
    if (!text.empty()) arguments[argument.name] = text;
  }
  const std::string id =
      start_change(request.database(), change, arguments.dump(), actor_of(request));
  run_steps(request.database(), id, kMoment);
  return operation_at(id);
}

Response go_on(const Request& request) {
  run_steps(request.database(), request.parameter("id"), kMoment);
  return operation_at(request.parameter("id"));
}

Response stop_steps(const Request& request) {
  request.database().query(kStopOperation, {request.parameter("id")});
  return operation_at(request.parameter("id"));
}

Response undo_steps(const Request& request) {
  const std::string id =
      request.database().query(kUndo, {request.parameter("id"), actor_of(request)})[0].text("id");
  run_steps(request.database(), id, kMoment);
  return operation_at(id);
}

QueryResult read_operation(const Request& request) {
  QueryResult rows = request.database().query(operation_list().one, {request.parameter("id")});
  if (rows.empty()) {
    refuse(http_status::kNotFound, "operation " + request.parameter("id") + " is unknown",
           "Operations are on record as long as pulse.keep_attempts.");
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
            answers({"Undo the " + rows[0].text("action"), true, self, "Leave it as it is"})});
  return shown_page(request, {"Undo", "/operations", element("div", "question", content)});
}

Markup operation_facts(const QueryResult::Row& row, const Spelling& spelling) {
  Markup list;
  for (const Column& column : operation_list().columns) {
    Markup content = fact(column, row.optional_text(column.field), spelling);
    if (content.empty() || column.field == "id") continue;
    const bool is_operation = column.field == "undoes" || column.field == "undone_by";
    if (is_operation) content = link(Url("/operations").part(row.text(column.field)), content);
    list += element("div", "", {element("dt", "", column.title), element("dd", "", content)});
  }
  return element("dl", "facts", list);
}

// With a script, a running operation goes on alone; without a script, an operator presses the
// button.
Markup operation_actions(const Request& request, const QueryResult::Row& row) {
  const Url self = Url("/operations").part(row.text("id"));
  const auto post = [&](const char* what, const char* name, const char* css, bool is_automatic) {
    return element("form",
                   {{"method", "post"},
                    {"action", self.part(what)},
                    {"data-automatic", present_if(is_automatic)}},
                   {hidden_field("csrf", request.access.csrf),
                    element("button", {{"class", css}, {"type", "submit"}}, name)});
  };
  if (row.text("state") == "running") {
    return {post("run", "Go on", "primary", true), post("stop", "Stop", "button", false)};
  }
  const bool may_be_undone =
      row.is_null("undoes") && row.is_null("undone_by") && row.integer("changed") > 0;
  return may_be_undone ? button(self.part("undo"), "Undo …") : Markup();
}

// How many jobs, and of which filter; or the object that another change was about.
std::string object_of(const QueryResult::Row& row) {
  const std::string subject = row.optional_text("subject").value_or("");
  if (!is_change_of_jobs(row.text("action"))) return subject;
  std::string object = "of " + plural(row.integer("changed"), "job");
  if (row.integer("skipped") > 0) object += ", " + spell_count(row.text("skipped")) + " left alone";
  return subject.empty() ? object : object + ": " + subject;
}

Response operation_page(const Request& request) {
  const QueryResult rows = read_operation(request);
  const auto row = rows[0];
  const Markup title{"Operation ", row.text("id"), " ", state(row.text("state"))};
  const std::string lead = row.text("action") + ' ' + object_of(row);
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
  router.add("GET", "/operations/{id}", Need::read, operation_page);
  router.add("GET", "/operations/{id}/undo", Need::act, ask_undo);
  router.add("POST", "/operations/{id}/undo", Need::act, undo_steps);
  router.add("POST", "/operations/{id}/run", Need::act, go_on);
  router.add("POST", "/operations/{id}/stop", Need::act, stop_steps);
}

}  // namespace pulse::console
