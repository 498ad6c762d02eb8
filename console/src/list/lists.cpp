#include "list/lists.hpp"

#include "output/partial_count.hpp"

#define PULSE_MOST_WORKERS 300
#define PULSE_MOST_SCHEDULES 1000
#define PULSE_MOST_RUNNING 200
#define PULSE_TEXT_OF(number) #number
#define PULSE_LIMIT(number) " LIMIT " PULSE_TEXT_OF(number)

namespace pulse::console {
namespace {

// How often attempts ended in the last minute, and how long they waited and ran: for lists that
// join these rates as r.
#define PULSE_RATES                                                                        \
  " round(r.per_second * 60) AS per_minute, extract(epoch FROM r.wait_p50) AS wait_p50,"   \
  " extract(epoch FROM r.wait_p99) AS wait_p99, extract(epoch FROM r.run_p50) AS run_p50," \
  " extract(epoch FROM r.run_p99) AS run_p99,"
const Columns kRates{{"a minute", "per_minute", Kind::count},
                     {"wait, median", "wait_p50", Kind::seconds},
                     {"wait, 99 %", "wait_p99", Kind::seconds},
                     {"run, median", "run_p50", Kind::seconds},
                     {"run, 99 %", "run_p99", Kind::seconds}};

Column counted(const char* title, const char* field, const char* plus_field) {
  Column column{title, field, Kind::count};
  column.plus_field = plus_field;
  return column;
}

Columns with_rates(Columns first, const Columns& last) {
  first.insert(first.end(), kRates.begin(), kRates.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

}  // namespace

// The text of the row of pulse.stats() that stands for further names: "38 more", or "more" where
// not all names are counted. NULL in other rows.
#define PULSE_IS_MORE "s.kind IS NOT NULL AND s.name IS NULL"
#define PULSE_MORE \
  " CASE WHEN " PULSE_IS_MORE " THEN coalesce(s.names || ' more', 'more') END AS more,"

#define PULSE_COUNT(field, name) " " PULSE_COUNT_OF(field) " AS " name ","
#define PULSE_COUNTS PULSE_COUNT("parked", "parked") PULSE_COUNT("running", "running")
#define PULSE_TASK_COUNTS PULSE_COUNT("ready", "ready") PULSE_COUNT("future", "future") PULSE_COUNTS
#define PULSE_QUEUE_COUNTS PULSE_COUNT("ready", "open") PULSE_COUNTS
#define PULSE_ESTIMATED                            \
  " s.kind IS NULL AND " PULSE_HAS_MORE            \
  " OR coalesce(s.estimated, false) AS estimated," \
  " " PULSE_PLUS_OF("plus") " AS plus, " PULSE_PLUS_OF("plus_of_all") " AS plus_of_all"

const List& overview_list() {
  static const List kList{
      "SELECT at, ready, future, due_next_minute, parked_full, parked_paused, parked_future,"
      " parked_waiting, running, extract(epoch FROM oldest_due_age) AS oldest_due_age,"
      " completed, failed, quarantined, cancelled, expired, workers_alive, workers_draining,"
      " workers_silent, workers_lost, next_schedule, next_schedule_at, installation, claims,"
      " sweeps, swept_at, to_json(estimated) AS estimated, counted_at, shard"
      " FROM pulse.overview",
      {
          {"at", "at", Kind::time},
          counted("ready", "ready", "estimated"),
          {"oldest due for", "oldest_due_age", Kind::seconds},
          counted("future", "future", "estimated"),
          counted("due next minute", "due_next_minute", "estimated"),
          counted("parked, queue full", "parked_full", "estimated"),
          counted("parked, queue paused", "parked_paused", "estimated"),
          counted("parked, future", "parked_future", "estimated"),
          counted("parked, after others", "parked_waiting", "estimated"),
          counted("running", "running", "estimated"),
          counted("completed last minute", "completed", "estimated"),
          counted("failed last minute", "failed", "estimated"),
          counted("quarantined last minute", "quarantined", "estimated"),
          counted("cancelled last minute", "cancelled", "estimated"),
          counted("expired last minute", "expired", "estimated"),
          {"workers alive", "workers_alive", Kind::count},
          {"workers draining", "workers_draining", Kind::count},
          {"workers silent", "workers_silent", Kind::count},
          {"workers lost last hour", "workers_lost", Kind::count},
          {"next schedule", "next_schedule"},
          {"next schedule at", "next_schedule_at", Kind::time},
          {"installation", "installation"},
          {"claims are on", "claims", Kind::boolean},
          {"dead workers are noticed", "sweeps", Kind::boolean},
          {"last sweep", "swept_at", Kind::time},
          {"", "estimated", Kind::names},
          {"jobs counted at", "counted_at", Kind::time},
          {"shard of ids", "shard", Kind::count},
      }};
  return kList;
}

// Rows of pulse.stats() (s), the rates of the last minute (r), and settings (q): of all names of s
// and r, so that a row without settings has none, and of the first thousand names.
#define PULSE_STATS_RATES_SETTINGS(kind, name_column, settings)                  \
  " s AS MATERIALIZED (SELECT *, " PULSE_PLUSES " FROM pulse.stats(1000, '" kind \
  "') WITH ORDINALITY),"                                                         \
  " r AS MATERIALIZED (SELECT " name_column " AS name, * FROM pulse." kind       \
  "_rates"                                                                       \
  " WHERE period = 'minute' AND " name_column                                    \
  " IS NOT NULL),"                                                               \
  " q AS (SELECT " name_column                                                   \
  " AS name, * FROM (SELECT *, row_number() OVER (ORDER BY " name_column         \
  ") AS place FROM pulse." settings ") AS a WHERE place <= 1000 OR " name_column \
  " IN (SELECT name FROM s UNION SELECT name FROM r))"

// This list asks the workers which tasks they serve; the view of unserved tasks also counts jobs.
const List& task_list() {
  static const List kList{
      "WITH living AS MATERIALIZED (SELECT w.tasks FROM pulse.worker_status AS w"
      " WHERE w.ended_at IS NULL AND w.status = 'alive' AND NOT "
      "w.silent)," PULSE_STATS_RATES_SETTINGS(
          "task", "identifier",
          "task_settings") " SELECT name AS identifier," PULSE_MORE PULSE_TASK_COUNTS
                           " " PULSE_OLDEST_AGE " AS oldest_due_age," PULSE_RATES
                           " name IS NOT NULL AND EXISTS ("
                           "SELECT FROM living AS l WHERE l.tasks IS NULL OR name = ANY (l.tasks))"
                           " AS is_served, q.max_attempts, extract(epoch FROM q.timeout) AS "
                           "timeout, q.queue,"
                           " q.handler, q.dead_letter," PULSE_ESTIMATED
                           " FROM s FULL JOIN q USING (name) FULL JOIN r USING (name)"
                           " ORDER BY " PULSE_IS_MORE ", s.ordinality NULLS LAST, name",
      with_rates({{"task", "identifier"},
                  {"further", "more"},
                  counted("ready", "ready", "plus"),
                  counted("future", "future", "plus"),
                  counted("parked", "parked", "plus_of_all"),
                  counted("running", "running", "plus_of_all"),
                  {"oldest due for", "oldest_due_age", Kind::seconds}},
                 {{"served", "is_served", Kind::boolean},
                  {"attempts", "max_attempts", Kind::number},
                  {"timeout", "timeout", Kind::seconds},
                  {"queue", "queue"},
                  {"handler", "handler"},
                  {"dead letter", "dead_letter"},
                  {"", "estimated", Kind::boolean}})};
  return kList;
}

// Queues with jobs, queues with settings, and queues of jobs that ended in the last minute.
const List& queue_list() {
  static const List kList{
      "WITH" PULSE_STATS_RATES_SETTINGS(
          "queue", "queue_name",
          "queue_settings") " SELECT name," PULSE_MORE PULSE_QUEUE_COUNTS " " PULSE_OLDEST_AGE
                            " AS oldest_due_age," PULSE_RATES
                            " q.concurrency, q.total, q.rate, extract(epoch FROM coalesce(q.per, "
                            "'1 s')) AS per,"
                            " q.is_strict, coalesce(s.paused, q.paused) AS paused," PULSE_ESTIMATED
                            " FROM s FULL JOIN q USING (name) FULL JOIN r USING (name)"
                            " ORDER BY " PULSE_IS_MORE ", s.ordinality NULLS LAST, name",
      with_rates({{"queue", "name"},
                  {"further", "more"},
                  counted("open", "open", "plus"),
                  counted("parked", "parked", "plus_of_all"),
                  counted("running", "running", "plus_of_all"),
                  {"oldest due for", "oldest_due_age", Kind::seconds}},
                 {{"at a time", "concurrency", Kind::count},
                  {"in all", "total", Kind::count},
                  {"rate", "rate", Kind::count},
                  {"", "per", Kind::seconds},
                  {"strict", "is_strict", Kind::boolean},
                  {"paused", "paused", Kind::boolean},
                  {"", "estimated", Kind::boolean}})};
  return kList;
}

// The view searches the jobs of each worker, so the statement first chooses the shown workers.
#define PULSE_WORKER                                     \
  "SELECT id, name, hostname, pid, " PULSE_WORKER_STATUS \
  ", running_jobs,"                                      \
  " last_heartbeat_at, attached, slots, version,"        \
  " to_json(tasks) AS tasks, started_at, ended_at, reason FROM pulse.worker_status"
const List& worker_list() {
  static const List kList{
      PULSE_WORKER
      " WHERE id = ANY (ARRAY(SELECT id FROM pulse.worker_status"
      " WHERE ended_at IS NULL OR $1::boolean ORDER BY ended_at DESC NULLS FIRST, id"
      PULSE_LIMIT(PULSE_MOST_WORKERS) "))"
      " ORDER BY ended_at DESC NULLS FIRST, id",
      {
          {"worker", "id", Kind::id},
          {"name", "name"},
          {"host", "hostname", Kind::text, 24},
          {"pid", "pid", Kind::number},
          {"status", "status", Kind::state},
          {"jobs", "running_jobs", Kind::count},
          {"slots", "slots", Kind::count},
          {"last heartbeat", "last_heartbeat_at", Kind::time},
          {"attached", "attached", Kind::boolean},
          {"version", "version", Kind::text, 20},
          {"started", "started_at", Kind::time},
          {"ended", "ended_at", Kind::time},
          {"tasks", "tasks", Kind::names},
          {"reason", "reason"},
      },
      PULSE_WORKER " WHERE id = $1::bigint",
      PULSE_MOST_WORKERS};
  return kList;
}

#define PULSE_SCHEDULE                                                                 \
  "SELECT name, identifier, rule, time_zone, paused, next_due, last_due, last_job_id," \
  " last_job_state, missed, overlapped, last_error FROM pulse.schedules"
const List& schedule_list() {
  static const List kList{PULSE_SCHEDULE
                          " ORDER BY next_due NULLS LAST, name" PULSE_LIMIT(PULSE_MOST_SCHEDULES),
                          {
                              {"schedule", "name"},
                              {"task", "identifier", Kind::text, 30},
                              {"rule", "rule", Kind::text, 30},
                              {"zone", "time_zone", Kind::text, 20},
                              {"paused", "paused", Kind::boolean},
                              {"next due", "next_due", Kind::time},
                              {"last due", "last_due", Kind::time},
                              {"its job", "last_job_id", Kind::id},
                              {"", "last_job_state", Kind::state},
                              {"missed", "missed", Kind::count},
                              {"overlapped", "overlapped", Kind::count},
                              {"last error", "last_error", Kind::text, 60},
                          },
                          PULSE_SCHEDULE " WHERE name = $1",
                          PULSE_MOST_SCHEDULES};
  return kList;
}

// jobs_checked counts the jobs of a large flow that the server has read; of other flows the server
// reads all jobs. The server counts the jobs of a flow up to 10,000.
#define PULSE_FLOW                                                                        \
  "SELECT id, name, jobs, nullif(jobs_checked, jobs) AS jobs_checked, waiting, running, " \
  "completed,"                                                                            \
  " failed, cancelled, created_at, last_finished_at,"                                     \
  " CASE WHEN jobs >= 10000 THEN '+' ELSE '' END AS plus"
const List& flow_list() {
  static const List kList{PULSE_FLOW " FROM pulse.list_flows($1::bigint, $2::int) ORDER BY id DESC",
                          {
                              {"flow", "id", Kind::id},
                              {"name", "name"},
                              counted("jobs", "jobs", "plus"),
                              {"of the first", "jobs_checked", Kind::count},
                              {"waiting", "waiting", Kind::count},
                              {"running", "running", Kind::count},
                              {"completed", "completed", Kind::count},
                              {"failed", "failed", Kind::count},
                              {"cancelled", "cancelled", Kind::count},
                              {"added", "created_at", Kind::time},
                              {"last end", "last_finished_at", Kind::time},
                          },
                          PULSE_FLOW
                          " FROM pulse.list_flows(nullif($1::bigint, 9223372036854775807) + 1, 1)"
                          " WHERE id = $1::bigint"};
  return kList;
}

#define PULSE_LISTED_OPERATIONS                                                             \
  "SELECT id, action, (SELECT string_agg(s.value, ', ') FROM json_each_text(subject) AS s)" \
  " AS subject, state, changed, skipped, undoes, undone_by, actor, role, created_at,"       \
  " ended_at FROM pulse.operations"
const List& operation_list() {
  static const List kList{PULSE_LISTED_OPERATIONS
                          " WHERE id < coalesce($1::bigint, 9223372036854775807)"
                          " ORDER BY id DESC LIMIT $2::int",
                          {
                              {"operation", "id", Kind::id},
                              {"action", "action"},
                              {"of", "subject"},
                              {"state", "state", Kind::state},
                              {"changed", "changed", Kind::count},
                              {"left alone", "skipped", Kind::count},
                              {"undoes", "undoes", Kind::id},
                              {"undone by", "undone_by", Kind::id},
                              {"role", "role"},
                              {"for", "actor"},
                              {"started", "created_at", Kind::time},
                              {"ended", "ended_at", Kind::time},
                          },
                          PULSE_LISTED_OPERATIONS " WHERE id = $1::bigint"};
  return kList;
}

const List& running_list() {
  static const List kList{
      "SELECT id, identifier, queue_name, attempts, max_attempts, worker_id, worker, progress,"
      " extract(epoch FROM pulse.now() - claimed_at) AS runs_for, cancel_requested_at"
      " FROM pulse.running_jobs ORDER BY claimed_at" PULSE_LIMIT(PULSE_MOST_RUNNING),
      {
          {"job", "id", Kind::id},
          {"task", "identifier", Kind::text, 30},
          {"queue", "queue_name", Kind::text, 20},
          {"attempt", "attempts", Kind::number},
          {"of", "max_attempts", Kind::number},
          {"worker", "worker", Kind::text, 24},
          {"", "worker_id", Kind::id},
          {"runs for", "runs_for", Kind::seconds},
          {"progress", "progress", Kind::part},
          {"cancelled", "cancel_requested_at", Kind::time},
      },
      nullptr,
      PULSE_MOST_RUNNING};
  return kList;
}

const List& recovery_list() {
  static const List kList{
      "SELECT ended_at, job_id, identifier, attempt, outcome,"
      " extract(epoch FROM ended_at - claimed_at) AS ran_for, worker_id, worker"
      " FROM pulse.recoveries($1::int)",
      {
          {"when", "ended_at", Kind::time},
          {"job", "job_id", Kind::id},
          {"task", "identifier", Kind::text, 30},
          {"attempt", "attempt", Kind::number},
          {"outcome", "outcome", Kind::state},
          {"after", "ran_for", Kind::seconds},
          {"", "worker_id", Kind::id},
          {"worker", "worker", Kind::text, 24},
      }};
  return kList;
}

const List& failure_list() {
  static const List kList{
      "SELECT error_line, jobs, is_exact, to_json(tasks) AS tasks, first_end, last_end"
      " FROM pulse.list_failures(coalesce($1::text[], '{failed,quarantined}'), $2, $3, $4, $5,"
      " $7::interval, $8::interval, 1000, $10::int)"
      " WHERE $6::text IS NULL OR error_line = $6 LIMIT $9::int",
      {
          {"error", "error_line", Kind::text, 80},
          {"jobs", "jobs", Kind::count},
          {"", "is_exact", Kind::boolean},
          {"tasks", "tasks", Kind::names},
          {"first", "first_end", Kind::time},
          {"last", "last_end", Kind::time},
      }};
  return kList;
}

std::string word_of_end(const List& list, const QueryResult& rows) {
  if (list.most == 0 || rows.size() < static_cast<std::size_t>(list.most)) return {};
  return "at most " + std::to_string(list.most) + " are listed";
}

bool is_cut(const QueryResult& failures) {
  return !failures.empty() && failures[0].text("is_exact") == "f";
}

const char* const kFailuresAreCut =
    "only the last failures were read, so more jobs may have failed in the same ways";

const List& finding_list() {
  static const List kList{"SELECT severity, finding, detail, what_to_do FROM pulse.doctor()",
                          {{"severity", "severity", Kind::state},
                           {"finding", "finding"},
                           {"detail", "detail"},
                           {"what to do", "what_to_do"}}};
  return kList;
}

}  // namespace pulse::console
