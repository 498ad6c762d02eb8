#include <algorithm>

#include "proofs.hpp"

namespace bench {
namespace {

constexpr int kJobs = 200000;
constexpr int kRepeats = 5;
const std::string kFuture = "now() + interval '1 day' + i * interval '1 second'";

struct Cost {
  std::int64_t buffers = 0;
  std::int64_t wal_records = 0;
  std::int64_t jobs = 0;
};

// A number that EXPLAIN's top node reports.
std::int64_t explained(const std::string& plan, const std::string& name) {
  std::size_t place = plan.find('"' + name + "\": ");
  if (place == std::string::npos) throw std::runtime_error("EXPLAIN tells no " + name);
  return std::stoll(plan.substr(place + name.size() + 4));
}

// The worst of some claims in a session that has claimed before.
Cost claim_cost(Session* session, std::int64_t worker) {
  Cost worst;
  std::string claim = "SELECT * FROM pulse.claim(" + std::to_string(worker) + ")";
  // A claim beats for its worker when the last beat is old: that is not what it costs to look.
  session->run("SELECT status FROM pulse.heartbeat($1)", {worker});
  session->run(claim);
  for (int i = 0; i < kRepeats; i++) {
    std::string plan = session->text("EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) " + claim);
    worst.buffers = std::max(worst.buffers, explained(plan, "Shared Hit Blocks") +
                                                explained(plan, "Shared Read Blocks"));
    worst.wal_records = std::max(worst.wal_records, explained(plan, "WAL Records"));
    worst.jobs = std::max(worst.jobs, explained(plan, "Actual Rows"));
  }
  return worst;
}

// The promise: 10 + 3 x the sum over served tasks of (1 + 2 x its distinct live priorities).
std::int64_t most_buffers(Session* session, std::int64_t worker) {
  return session->number(
      "SELECT (10 + 3 * coalesce(sum(1 + 2 * coalesce(live.priorities, 0)), 0))::bigint"
      "  FROM (SELECT unnest(w.tasks) FROM pulse.worker AS w WHERE w.id = $1"
      "        UNION SELECT j.identifier FROM pulse.job AS j, pulse.worker AS w"
      "         WHERE w.id = $1 AND w.tasks IS NULL) AS served (identifier)"
      "  LEFT JOIN (SELECT j.identifier, count(DISTINCT j.priority) AS priorities"
      "               FROM pulse.job AS j GROUP BY 1) AS live USING (identifier)",
      {worker});
}

class Case {
 public:
  Case(Report* report, Session* session) : report_(report), session_(session) {}

  // tasks: an SQL expression, what the worker serves. columns: of the jobs that are there.
  void check(const std::string& name, const std::string& tasks, const std::string& columns) {
    session_->script("TRUNCATE pulse.job");
    if (!columns.empty()) add_many(session_, columns, kJobs);
    measure(name, tasks);
  }

  void measure(const std::string& name, const std::string& tasks) {
    session_->script("ANALYZE pulse.job");
    std::int64_t worker =
        session_->number("SELECT id FROM pulse.register_worker('observer', " + tasks + ")");
    Cost cost = claim_cost(session_, worker);
    std::int64_t most = most_buffers(session_, worker);
    report_->check(cost.jobs == 0 && cost.buffers <= most && cost.wal_records == 0,
                   format("%s: %lld buffers (at most %lld), %lld WAL records", name.c_str(),
                          static_cast<long long>(cost.buffers), static_cast<long long>(most),
                          static_cast<long long>(cost.wal_records)));
  }

 private:
  Report* report_;
  Session* session_;
};

// One job of the queue runs, so that all the others wait behind it.
void given_busy_queue(Session* session) {
  session->script("TRUNCATE pulse.job");
  add_many(session, "'no_op', NULL, 'busy', NULL, NULL, NULL, i % 5, NULL", kJobs);
  std::int64_t owner = register_worker(session, "owner", "no_op");
  session->run("SELECT id FROM pulse.claim($1)", {owner});
}

}  // namespace

void prove_empty_claims(Report* report) {
  Session session("proof");
  // Hint bits and visibility are as some vacuum left them; none must come between two readings.
  Case empty_claim(report, &session);
  const std::string own = "ARRAY['no_op']";
  empty_claim.check("before nothing", own, "");
  empty_claim.check("before 200,000 future jobs", own,
                    "'no_op', NULL, NULL, " + kFuture + ", NULL, NULL, NULL, NULL");
  empty_claim.check("before 200,000 ready jobs of 100 tasks that it does not serve", own,
                    "'other_' || i % 100, NULL, NULL, NULL, NULL, NULL, NULL, NULL");
  empty_claim.check("before 200,000 future jobs of 20 priorities", own,
                    "'no_op', NULL, NULL, " + kFuture + ", NULL, NULL, i % 20, NULL");
  empty_claim.check("with 4 tasks, before 200,000 future jobs of 6 tasks with 20 priorities",
                    "ARRAY['task_0', 'task_1', 'task_2', 'no_op']",
                    "'task_' || i % 6, NULL, NULL, " + kFuture + ", NULL, NULL, i % 20, NULL");
  empty_claim.check("with every task, before 200,000 future jobs of 6 tasks", "NULL",
                    "'task_' || i % 6, NULL, NULL, " + kFuture + ", NULL, NULL, NULL, NULL");
  given_busy_queue(&session);
  empty_claim.measure("before 199,999 jobs behind a busy queue", own);
}

}  // namespace bench
