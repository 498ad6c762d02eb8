#include <chrono>
#include <thread>

#include "proofs.hpp"

namespace bench {
namespace {

constexpr int kWorkers = 10;
// Spread over a minute, so that they die at every distance from the next tick.
constexpr auto kBetweenDeaths = std::chrono::seconds(6);
constexpr auto kLook = std::chrono::seconds(1);
// What README.md says: with these settings, the bound of P5c for a tick each minute.
const std::string kSettings =
    "ALTER DATABASE postgres SET pulse.sweep_interval = '50 s';"
    "ALTER DATABASE postgres SET pulse.sweep_threshold = '90 s'";
constexpr double kBoundS = 5 + 90 + 60;

// A worker that claims a job and is gone; nothing tells but its silence.
void crash_worker(int number) {
  Session session("worker");
  std::int64_t worker = register_worker(&session, "worker_" + std::to_string(number), "no_op");
  if (session.run("SELECT id FROM pulse.claim($1)", {worker}).count() != 1)
    throw std::runtime_error("nothing to claim");
}

std::int64_t lost_jobs(Session* session) {
  return session->number("SELECT count(*) FROM pulse.attempt WHERE outcome = 'lost'");
}

}  // namespace

void prove_cron(Report* report) {
  {
    Session setup("proof");
    setup.script("CREATE EXTENSION pg_cron");
    setup.script(kSettings);
    setup.script(setup.text("SELECT pulse.cron_setup_sql()"));
  }
  Session session("proof");
  add_many(&session, "'no_op', NULL, NULL, NULL, NULL, NULL, NULL, NULL", kWorkers);
  for (int i = 0; i < kWorkers; i++) {
    crash_worker(i);
    std::this_thread::sleep_for(kBetweenDeaths);
  }
  auto give_up =
      std::chrono::steady_clock::now() + std::chrono::seconds(static_cast<int>(kBoundS) + 60);
  while (lost_jobs(&session) < kWorkers && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(kLook);
  report->check(lost_jobs(&session) == kWorkers,
                format("%lld of %d jobs are recovered by pg_cron alone",
                       static_cast<long long>(lost_jobs(&session)), kWorkers));
  Rows times = session.run(
      "SELECT (1000 * extract(epoch FROM a.ended_at - h.last_heartbeat_at))::bigint"
      "  FROM pulse.attempt AS a JOIN pulse.heartbeat AS h ON h.worker_id = a.worker_id"
      " WHERE a.outcome = 'lost' ORDER BY 1");
  std::string all;
  int in_time = 0;
  for (int i = 0; i < times.count(); i++) {
    double seconds = static_cast<double>(times.number(i, 0)) / 1000;
    in_time += seconds <= kBoundS;
    all += format(" %.0f", seconds);
  }
  report->check(in_time == kWorkers,
                format("%d of %d within %.0f s of the last beat", in_time, kWorkers, kBoundS));
  report->note("seconds:" + all);
  report->check(
      session.number("SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'") == 0,
      "no tick failed");
  check_verify(&session, report);
}

}  // namespace bench
