// One worker: its beats, running jobs, served tasks, and the attempts that a sweep or an operator
// took from it.
#include "base/http/status.hpp"
#include "base/text/inert.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "serve/problem.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kWorkerBeats =
    "SELECT extract(epoch FROM heartbeat_interval) AS every,"
    " extract(epoch FROM sweep_threshold) AS lost_after FROM pulse.worker_status"
    " WHERE id = $1::bigint";
const Columns kWorkerBeatColumns{{"beats every", "every", Kind::seconds},
                                 {"lost after a silence of", "lost_after", Kind::seconds}};

const List kWorkerJobs{
    "SELECT id, identifier, queue_name, attempts, max_attempts, progress,"
    " extract(epoch FROM pulse.now() - claimed_at) AS runs_for, cancel_requested_at"
    " FROM pulse.running_jobs WHERE worker_id = $1::bigint ORDER BY claimed_at LIMIT 200",
    {{"job", "id", Kind::id},
     {"task", "identifier"},
     {"queue", "queue_name"},
     {"attempt", "attempts", Kind::number},
     {"of", "max_attempts", Kind::number},
     {"runs for", "runs_for", Kind::seconds},
     {"progress", "progress", Kind::part},
     {"cancelled", "cancel_requested_at", Kind::time}},
    nullptr,
    200};

// Among the last recoveries of all workers.
constexpr const char* kWorkerTaken =
    "SELECT ended_at, job_id, identifier, attempt, outcome,"
    " extract(epoch FROM ended_at - claimed_at) AS ran_for"
    " FROM pulse.recoveries(1000) WHERE worker_id = $1::bigint LIMIT 50";
const Columns kWorkerTakenColumns{{"when", "ended_at", Kind::time},
                                  {"job", "job_id", Kind::id},
                                  {"task", "identifier"},
                                  {"attempt", "attempt", Kind::number},
                                  {"outcome", "outcome", Kind::state},
                                  {"after", "ran_for", Kind::seconds}};

QueryResult read_worker(const Request& request) {
  QueryResult rows = request.database().query(worker_list().one, {request.parameter("id")});
  if (rows.empty()) {
    refuse(http_status::kNotFound, "worker " + request.parameter("id") + " is unknown",
           "Workers are on record while they live, and for a day.");
  }
  return rows;
}

Markup worker_facts(const Columns& columns, const QueryResult::Row& row, const Spelling& spelling) {
  Markup facts;
  for (const Column& column : columns) {
    if (column.field == "name" || column.field == "tasks" || column.field == "status") continue;
    const Markup content = fact(column, row.optional_text(column.field), spelling);
    if (content.empty()) continue;
    facts += element("div", "", {element("dt", "", column.title), element("dd", "", content)});
  }
  return facts;
}

Markup worker_tasks(const QueryResult::Row& worker) {
  if (worker.is_null("tasks")) return element("p", "hint", "Every task.");
  Markup names;
  for (const std::string& name : json_strings(worker.optional_text("tasks"))) {
    names += element("li", "name", link(Url("/task").with("name", name), visible(name)));
  }
  return element("ul", "names", names);
}

Markup worker_content(const Request& request, const QueryResult::Row& worker) {
  const Spelling spelling = spelling_of(request);
  const std::string& id = worker.text("id");
  Database& database = request.database();
  Markup facts = worker_facts(worker_list().columns, worker, spelling);
  const QueryResult beats = database.query(kWorkerBeats, {id});
  if (!beats.empty()) facts += worker_facts(kWorkerBeatColumns, beats[0], spelling);
  const TableLayout running{{{"id", "/jobs", nullptr, "id"},
                             {"identifier", "/jobs", "task", "identifier"},
                             {"queue_name", "/queue", "name", "queue_name"}},
                            {},
                            {"max_attempts"},
                            "The worker runs no job.",
                            nullptr,
                            running_cell,
                            "table jobs running"};
  Markup content = element("dl", "facts", facts);
  const QueryResult jobs = database.query(kWorkerJobs.sql, {id});
  content += section("Its jobs", {html_table(kWorkerJobs.columns, jobs, running, spelling, false),
                                  end_of(kWorkerJobs, jobs)});
  content += section("Its tasks", worker_tasks(worker));
  const QueryResult taken = database.query(kWorkerTaken, {id});
  if (!taken.empty()) {
    content += section("Jobs that were taken from it",
                       html_table(kWorkerTakenColumns, taken,
                                  {{{"job_id", "/jobs", nullptr, "job_id"},
                                    {"identifier", "/jobs", "task", "identifier"}},
                                   {},
                                   {},
                                   ""},
                                  spelling, false));
  }
  return content;
}

Response worker_page(const Request& request) {
  const QueryResult rows = read_worker(request);
  const auto worker = rows[0];
  const std::string& id = worker.text("id");
  const std::string name = worker.optional_text("name").value_or(id);
  Markup actions;
  if (request.access.is_operator && worker.is_null("ended_at")) {
    actions = {button(Url("/workers/drain").with("worker", id), "Drain"),
               button(Url("/workers/stop").with("worker", id), "Stop")};
  }
  const Markup title{"Worker ", name, " ", state(worker.optional_text("status").value_or(""))};
  return shown_page(request,
                    {"Worker " + name,
                     "/workers",
                     {page_heading(title, actions),
                      live(Url("/live/workers").part(id), worker_content(request, worker))}});
}

}  // namespace

void add_worker_page(Router& router) {
  router.add("GET", "/workers/{id}", Need::read, worker_page);
  router.add_stream("/live/workers/{id}", Need::read, kListInterval, [](const Request& request) {
    const QueryResult rows = read_worker(request);
    return worker_content(request, rows[0]).html();
  });
}

}  // namespace pulse::console
