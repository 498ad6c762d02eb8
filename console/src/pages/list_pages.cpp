// The pages that are but a list.
#include "base/text/inert.hpp"
#include "job/job_change.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

bool is_living(const QueryResult::Row& worker) { return worker.is_null("ended_at"); }

// Bad news stands out.
Markup served(const Column& column, const QueryResult::Row& task) {
  if (column.field != "identifier" || task.text("is_served") == "t") return {};
  const std::string& name = task.text("identifier");
  return {link(Url("/task").with("name", name), visible(name)), " ",
          element("span", "state bad", "no worker")};
}

// A rule stands in one piece; "every 00:10:00" is spelled as other durations are.
Markup schedule_cell(const Column& column, const QueryResult::Row& schedule) {
  if (column.field == "rule") return rule_of(schedule.optional_text("rule").value_or(""));
  if (column.field != "paused" || !is_paused(schedule)) return {};
  return element("span", "state warning", "paused");
}

// An undo is of an operation. A change of something else than jobs changes none.
Markup operation_cell(const Column& column, const QueryResult::Row& operation) {
  if (column.field == "subject" && !operation.is_null("undoes")) {
    const std::string& id = operation.text("undoes");
    return link(Url("/operations").part(id), "operation " + id);
  }
  if (column.field != "changed") return {};
  if (!is_change_of_jobs(operation.text("action"))) return element("span", "", "");
  const std::string changed = plural(operation.integer("changed"), "job");
  if (operation.integer("skipped") == 0) return changed;
  return {changed, ", ", spell_count(operation.text("skipped")), " left alone"};
}

// A worker by its name, which leads to its page, and how many of its slots it uses.
Markup worker_cell(const Column& column, const QueryResult::Row& worker) {
  if (column.field == "name") {
    const std::string& id = worker.text("id");
    return link(Url("/workers").part(id), worker.optional_text("name").value_or(id));
  }
  const auto used = worker.optional_integer("running_jobs");
  const auto slots = worker.optional_integer("slots");
  if (column.field != "running_jobs" || !used || !slots || *slots <= 0) return {};
  return {worker.text("running_jobs"), " of ", worker.text("slots")};
}

void add_who_works(Router& router) {
  add_list_page(router, {"/tasks",
                         "Tasks",
                         "Tasks with jobs or settings; those whose jobs wait longest come first.",
                         task_list,
                         {},
                         {{{"identifier", "/task", "name", "identifier"},
                           {"queue", "/queue", "name", "queue"},
                           {"dead_letter", "/task", "name", "dead_letter"}},
                          {},
                          {"more", "estimated", "is_served"},
                          "No task has jobs or settings.",
                          nullptr,
                          served,
                          "table depths",
                          nullptr,
                          "more"}});
  add_list_page(router, {"/workers",
                         "Workers",
                         "Workers that live, and those that ended within a day.",
                         worker_list,
                         {"t"},
                         {{},
                          {{"Drain", "/workers/drain", "worker", "id", is_living},
                           {"Stop", "/workers/stop", "worker", "id", is_living}},
                          {"id", "pid", "slots"},
                          "No worker is registered.",
                          nullptr,
                          worker_cell}});
  add_list_page(router, {"/running",
                         "Running jobs",
                         "Those that have run longest come first.",
                         running_list,
                         {},
                         {{{"id", "/jobs", nullptr, "id"},
                           {"identifier", "/jobs", "task", "identifier"},
                           {"queue_name", "/jobs", "queue", "queue_name"},
                           {"worker", "/workers", nullptr, "worker_id"}},
                          {},
                          {"max_attempts"},
                          "No job runs.",
                          nullptr,
                          running_cell,
                          "table jobs running"}});
}

void add_what_is_planned(Router& router) {
  add_list_page(router, {"/schedules",
                         "Schedules",
                         "What adds jobs by the clock, in the order of the next due times.",
                         schedule_list,
                         {},
                         {{{"name", "/schedule", "name", "name"},
                           {"identifier", "/jobs", "task", "identifier"},
                           {"last_job_id", "/jobs", nullptr, "last_job_id"}},
                          {{"Run now", "/schedules/run", "schedule", "name", is_any},
                           {"Pause", "/schedules/pause", "schedule", "name", is_not_paused},
                           {"Resume", "/schedules/resume", "schedule", "name", is_paused}},
                          {"last_error"},
                          "No schedule adds jobs.",
                          nullptr,
                          schedule_cell}});
  add_list_page(router, {"/flows",
                         "Flows",
                         "Jobs that were added together, the newest first.",
                         flow_list,
                         {},
                         {{{"id", "/flows", nullptr, "id"}, {"name", "/flows", nullptr, "id"}},
                          {},
                          {},
                          "No flow is on record."},
                         true});
  add_list_page(
      router,
      {"/operations",
       "Operations",
       "What operators changed, the newest first.",
       operation_list,
       {},
       {{{"id", "/operations", nullptr, "id"}, {"undone_by", "/operations", nullptr, "undone_by"}},
        {},
        {"undoes", "skipped", "role", "ended_at"},
        "Nothing was done to many jobs at once.",
        nullptr,
        operation_cell,
        "table operations"},
       true});
}

Response doctor_page(const Request& request) {
  const QueryResult rows = request.database().query(finding_list().sql);
  Markup content =
      page_heading("Doctor", {}, "What is wrong with this installation, and what to do.");
  if (rows.empty()) content += notice("good", "Nothing is wrong.");
  const Spelling spelling = spelling_of(request);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto finding = rows[i];
    const auto told = [&](const char* field) {
      return with_moments(finding.optional_text(field).value_or(""), spelling);
    };
    content +=
        element("article", {{"class", "finding " + finding.text("severity")}},
                {state(finding.text("severity")), element("h2", "", finding.text("finding")),
                 element("p", "", told("detail")), element("p", "remedy", told("what_to_do"))});
  }
  return shown_page(request, {"Doctor", "/doctor", content});
}

}  // namespace

void add_list_pages(Router& router) {
  add_who_works(router);
  add_what_is_planned(router);
  router.add("GET", "/doctor", Need::read, doctor_page);
}

}  // namespace pulse::console
