#include "top/pane.hpp"

#include <string_view>

#include "job/shown_state.hpp"
#include "list/lists.hpp"
#include "list/node_overviews.hpp"
#include "output/partial_count.hpp"

namespace pulse::console {
namespace {

Pane tasks() {
  return {"tasks",
          "WITH living AS MATERIALIZED (SELECT w.tasks FROM pulse.worker_status AS w"
          " WHERE w.ended_at IS NULL AND w.status = 'alive' AND NOT w.silent)"
          " SELECT coalesce(s.name, r.identifier, s.names || ' more', 'more') AS name,"
          " " PULSE_COUNT_OF("ready") " || " PULSE_PLUS_OF("plus") " AS ready,"
          " " PULSE_COUNT_OF("future") " || " PULSE_PLUS_OF("plus") " AS future,"
          " " PULSE_COUNT_OF("parked") " || " PULSE_PLUS_OF("plus_of_all") " AS parked,"
          " " PULSE_COUNT_OF("running") " || " PULSE_PLUS_OF("plus_of_all") " AS running,"
          " " PULSE_OLDEST_AGE " AS age,"
          " round(r.per_second::numeric, 1) AS per_second,"
          " extract(epoch FROM r.wait_p95) AS wait, extract(epoch FROM r.run_p95) AS run,"
          " EXISTS (SELECT FROM living AS l WHERE l.tasks IS NULL"
          " OR coalesce(s.name, r.identifier) = ANY (l.tasks)) AS served"
          " FROM (SELECT *, " PULSE_PLUSES
          " FROM pulse.stats(1000, 'task') WITH ORDINALITY) AS s"
          " FULL JOIN (SELECT * FROM pulse.task_rates WHERE period = 'minute'"
          " AND identifier IS NOT NULL) AS r ON r.identifier = s.name"
          " ORDER BY s.kind IS NOT NULL AND s.name IS NULL, s.ordinality NULLS LAST,"
          " r.per_second DESC NULLS LAST, 1",
          {{"task", "name"},
           {"ready", "ready", Kind::count},
           {"future", "future", Kind::count},
           {"parked", "parked", Kind::count},
           {"running", "running", Kind::count},
           {"oldest due for", "age", Kind::seconds},
           {"per s", "per_second", Kind::number},
           {"wait p95", "wait", Kind::seconds},
           {"run p95", "run", Kind::seconds},
           {"served", "served", Kind::boolean}},
          "name",
          "task",
          nullptr,
          {},
          nullptr,
          "age"};
}

Pane queues() {
  return {"queues",
          "SELECT coalesce(s.name, s.names || ' more', 'more') AS name, s.name IS NULL AS is_more,"
          " s.ready || s.plus AS open, s.parked || s.plus_of_all AS parked,"
          " s.running || s.plus_of_all AS running,"
          " " PULSE_OLDEST_AGE
          " AS age,"
          " round(r.per_second::numeric, 1) AS per_second,"
          " extract(epoch FROM r.wait_p95) AS wait, extract(epoch FROM r.run_p95) AS run,"
          " q.concurrency, q.total, s.paused"
          " FROM (SELECT *, " PULSE_PLUSES
          " FROM pulse.stats(1000, 'queue') WITH ORDINALITY) AS s"
          " LEFT JOIN (SELECT * FROM pulse.queue_rates WHERE period = 'minute') AS r"
          " ON r.queue_name = s.name"
          " LEFT JOIN pulse.queue_settings AS q ON q.queue_name = s.name"
          " ORDER BY s.ordinality",
          {{"queue", "name"},
           {"open", "open", Kind::count},
           {"parked", "parked", Kind::count},
           {"running", "running", Kind::count},
           {"oldest due for", "age", Kind::seconds},
           {"per s", "per_second", Kind::number},
           {"wait p95", "wait", Kind::seconds},
           {"run p95", "run", Kind::seconds},
           {"at a time", "concurrency", Kind::count},
           {"in all", "total", Kind::count},
           {"paused", "paused", Kind::boolean}},
          "name",
          "queue",
          nullptr,
          {{'p', "pause", "SELECT FROM pulse.pause_queue($1)"},
           {'u', "resume", "SELECT FROM pulse.resume_queue($1)"}},
          "is_more",
          "age"};
}

Pane workers() {
  return {"workers",
          "SELECT id, name, hostname, " PULSE_WORKER_STATUS
          ", running_jobs, slots, version,"
          " extract(epoch FROM pulse.now() - last_heartbeat_at) AS beat_age,"
          " to_json(tasks) AS tasks, reason"
          " FROM pulse.worker_status ORDER BY ended_at DESC NULLS FIRST, id LIMIT 200",
          {{"worker", "id", Kind::id},
           {"name", "name", Kind::text, 30},
           {"host", "hostname", Kind::text, 20},
           {"status", "status", Kind::state},
           {"jobs", "running_jobs", Kind::count},
           {"slots", "slots", Kind::count},
           {"version", "version", Kind::text, 12},
           {"last beat", "beat_age", Kind::seconds},
           {"tasks", "tasks", Kind::names, 30},
           {"reason", "reason"}},
          "id",
          "worker",
          nullptr,
          {{'d', "drain", "SELECT pulse.drain_worker($1::bigint)"},
           {'x', "stop", "SELECT pulse.stop_worker($1::bigint)"}}};
}

Pane running() {
  return {"running",
          "SELECT id, identifier, queue_name, attempts, max_attempts, worker, progress,"
          " extract(epoch FROM pulse.now() - claimed_at) AS runs_for, cancel_requested_at"
          " FROM pulse.running_jobs ORDER BY claimed_at LIMIT 200",
          {{"job", "id", Kind::id},
           {"task", "identifier", Kind::text, 30},
           {"queue", "queue_name", Kind::text, 20},
           {"attempt", "attempts", Kind::number},
           {"of", "max_attempts", Kind::number},
           {"worker", "worker", Kind::text, 24},
           {"runs for", "runs_for", Kind::seconds},
           {"progress", "progress", Kind::part},
           {"cancelled", "cancel_requested_at", Kind::time}},
          "id",
          "job",
          "id",
          {{'c', "cancel", nullptr}},
          nullptr,
          "runs_for"};
}

Pane recoveries() {
  return {"recoveries",
          "SELECT job_id, identifier, attempt, outcome, worker, ended_at,"
          " extract(epoch FROM ended_at - claimed_at) AS ran_for FROM pulse.recoveries(200)",
          {{"when", "ended_at", Kind::time},
           {"job", "job_id", Kind::id},
           {"task", "identifier", Kind::text, 30},
           {"attempt", "attempt", Kind::number},
           {"outcome", "outcome", Kind::state},
           {"after", "ran_for", Kind::seconds},
           {"worker", "worker", Kind::text, 24}},
          "job_id",
          "job",
          "job_id",
          {},
          nullptr,
          "ended_at"};
}

#define PULSE_JOBS "SELECT *, " PULSE_SHOWN_STATE("state", "run_at") " FROM pulse.list_jobs("
Pane jobs(const char* title, const char* sql, std::vector<Action> actions) {
  return {title,
          sql,
          {{"job", "id", Kind::id},
           {"task", "identifier", Kind::text, 30},
           {"state", "shown_state", Kind::state},
           {"queue", "queue_name", Kind::text, 20},
           {"attempts", "attempts", Kind::number},
           {"crashes", "crashes", Kind::number},
           {"due", "run_at", Kind::time},
           {"ended", "finished_at", Kind::time},
           {"last error", "last_error_line", Kind::text, 60}},
          "id",
          "job",
          "id",
          std::move(actions),
          nullptr,
          "created_at"};
}

// Titles without the clause behind a comma: the head of the screen tells which minute counts.
Pane nodes() {
  Columns columns = node_columns();
  for (Column& column : columns) column.title = column.title.substr(0, column.title.find(','));
  return {"nodes", nullptr, columns, "node", "node", nullptr, {}, nullptr, nullptr, "node"};
}

Pane with_node(Pane pane) {
  pane.columns.insert(pane.columns.begin(), {"node", kNodeWords, Kind::state, 36});
  pane.node_field = "node";
  return pane;
}

}  // namespace

const std::vector<Pane>& panes() {
  static const std::vector<Pane> kPanes{
      tasks(),
      queues(),
      workers(),
      running(),
      recoveries(),
      jobs("failed", PULSE_JOBS "'{failed,quarantined}', max_rows => 200) WHERE state IS NOT NULL",
           {{'r', "retry", nullptr}}),
      jobs("jobs", PULSE_JOBS "max_rows => 200) WHERE state IS NOT NULL",
           {{'r', "retry", nullptr}, {'c', "cancel", nullptr}}),
  };
  return kPanes;
}

const std::vector<Pane>& node_panes() {
  static const std::vector<Pane> kPanes = [] {
    std::vector<Pane> all{nodes()};
    for (const Pane& pane : panes()) all.push_back(with_node(pane));
    return all;
  }();
  return kPanes;
}

}  // namespace pulse::console
