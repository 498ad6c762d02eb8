#include <algorithm>

#include "proofs.hpp"

namespace bench {
namespace {

constexpr int kPolls = 25;
constexpr double kMostMs = 10;

// A million ready jobs of 10 tasks and 3 priorities, others in the future, in 20,000 queues and
// running, two million finished ones, and workers that ended.
void given_tables(Session* session) {
  session->script(
      "INSERT INTO pulse.job (identifier, priority, run_at, payload)"
      " SELECT 'task_' || i % 10, i % 3, now() - interval '1 ms' * i, '{\"n\": 1}'"
      "   FROM generate_series(1, 1000000) AS i;"
      "INSERT INTO pulse.job (identifier, priority, run_at)"
      " SELECT 'task_' || i % 10, i % 3, now() + interval '1 s' * i"
      "   FROM generate_series(1, 100000) AS i;"
      "INSERT INTO pulse.job (identifier, queue_name, state, run_at)"
      " SELECT 'queued', 'queue_' || i % 20000, 'parked', now() - interval '1 s' * i"
      "   FROM generate_series(1, 100000) AS i;"
      "INSERT INTO pulse.finished_job (id, identifier, payload, priority, run_at, state, attempts,"
      "    max_attempts, crashes, revision, created_at, finished_at)"
      " SELECT 10000000 + i, 'task_' || i % 10, '{}', 0, now(),"
      "        CASE WHEN i % 10 = 0 THEN 'failed' ELSE 'completed' END::pulse.finished_state,"
      "        1, 25, 0, 0, now(), now() - interval '1 s' * i"
      "   FROM generate_series(1, 2000000) AS i;"
      "INSERT INTO pulse.worker (id, name, heartbeat_interval, sweep_threshold, started_at, state,"
      "    ended_at)"
      " SELECT i, 'ended_' || i, '5 s', '20 s', now() - interval '10 days', 'stopped',"
      "        now() - interval '5 days' FROM generate_series(1, 20000) AS i");
  for (int i = 0; i < 50; i++) {
    std::int64_t worker =
        register_worker(session, "living_" + std::to_string(i), "task_" + std::to_string(i % 10));
    session->run("SELECT count(*) FROM pulse.claim($1, 20)", {worker});
  }
  for (const char* table : {"job", "finished_job", "worker"})
    session->script(std::string("VACUUM ANALYZE pulse.") + table);
}

std::string explain(Session* session, const std::string& view) {
  return session->text("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT * FROM pulse." +
                       view);
}

// A number that EXPLAIN tells first, in its top node or, with "Execution Time", of the whole.
double explained(const std::string& plan, const std::string& name) {
  std::size_t place = plan.find('"' + name + "\": ");
  if (place == std::string::npos) throw std::runtime_error("EXPLAIN tells no " + name);
  return std::stod(plan.substr(place + name.size() + 4));
}

void check_view(Session* session, const std::string& view, Report* report) {
  std::vector<double> ms;
  double buffers = 0;
  double rows = 0;
  explain(session, view);
  for (int i = 0; i < kPolls; i++) {
    std::string plan = explain(session, view);
    ms.push_back(explained(plan, "Execution Time"));
    buffers = explained(plan, "Shared Hit Blocks") + explained(plan, "Shared Read Blocks");
    rows = explained(plan, "Actual Rows");
  }
  std::ranges::sort(ms);
  report->check(ms[kPolls / 2] < kMostMs,
                format("%s: %.0f rows in %.2f ms (median; %.2f to %.2f), %.0f buffers",
                       view.c_str(), rows, ms[kPolls / 2], ms.front(), ms.back(), buffers));
}

}  // namespace

void prove_views(Report* report) {
  Session session("proof");
  given_tables(&session);
  for (const char* view : {"stats", "settings", "worker_status", "stale"})
    check_view(&session, view, report);
  session.script("UPDATE pulse.heartbeat SET verdict = 'lost'");
  check_view(&session, "stale", report);
}

}  // namespace bench
