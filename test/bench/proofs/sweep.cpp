#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include "proofs.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOrphans = 100000;
constexpr int kDead = 200;
constexpr int kClaimers = 4;
constexpr int kClaimedAtOnce = 10;
constexpr auto kPace = std::chrono::milliseconds(20);
constexpr double kMostS = 2.0;
constexpr double kAimClaimMs = 50;

double ms(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// A worker that does nothing but take jobs and report them, at the pace of jobs that take a while.
class Claimer {
 public:
  explicit Claimer(int number)
      : session_("claimer_" + std::to_string(number)),
        worker_(register_worker(&session_, "claimer_" + std::to_string(number), "living")) {}
  ~Claimer() { stop(); }

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Claims of more than 0 jobs so far; how long each took.
  const std::vector<double>& claims_ms() const { return claims_ms_; }
  bool is_broken() const { return broken_; }

 private:
  void run() {
    try {
      while (!stop_) claim_and_complete();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "claimer: %s\n", error.what());
      broken_ = true;
    }
  }

  void claim_and_complete() {
    Clock::time_point started = Clock::now();
    Rows jobs = session_.run("SELECT id, token FROM pulse.claim($1, $2)",
                             {worker_, std::int64_t{kClaimedAtOnce}});
    claims_ms_.push_back(ms(Clock::now() - started));
    Ids ids;
    Ids tokens;
    for (int i = 0; i < jobs.count(); i++) {
      ids.push_back(jobs.number(i, 0));
      tokens.push_back(jobs.number(i, 1));
    }
    if (ids.empty()) throw std::runtime_error("nothing is left to claim");
    session_.run("SELECT * FROM pulse.complete_many($1, $2)", {ids, tokens});
    std::this_thread::sleep_for(kPace);
  }

  Session session_;
  std::int64_t worker_;
  std::vector<double> claims_ms_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> broken_ = false;
  std::thread thread_;
};

// Workers that held 500 jobs each when they died, ten minutes ago.
void given_orphans(Session* session) {
  add_many(session, "'orphaned', NULL, NULL, NULL, NULL, NULL, NULL, NULL", kOrphans);
  for (int i = 0; i < kDead; i++) {
    std::int64_t worker = register_worker(session, "dead_" + std::to_string(i), "orphaned");
    session->run("SELECT count(*) FROM pulse.claim($1, $2)",
                 {worker, std::int64_t{kOrphans / kDead}});
  }
  session->script("UPDATE pulse.heartbeat SET beat_live_us = beat_live_us - 600000000");
  add_many(session, "'living', NULL, NULL, NULL, NULL, NULL, NULL, NULL", kOrphans);
  session->script("VACUUM ANALYZE pulse.job");
  session->script("CHECKPOINT");
}

struct Sweeping {
  double total_s = 0;
  double cpu_s = 0;
  double longest_ms = 0;
  int transactions = 0;
  std::int64_t recovered = 0;
  std::int64_t lost = 0;
};

// What a process of the server has used so far; other load on the machine hardly changes that.
double cpu_seconds(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::size_t name_end = line.rfind(')');
  long user = 0;
  long system = 0;
  if (name_end == std::string::npos ||
      std::sscanf(line.c_str() + name_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
    throw std::runtime_error("/proc tells nothing of process " + std::to_string(pid));
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// As everybody who sweeps does it: again in a new transaction while the limit is reached.
Sweeping sweep_all() {
  Session session("sweeper");
  Sweeping sweeping;
  std::int64_t backend = session.number("SELECT pg_backend_pid()");
  Clock::time_point started = Clock::now();
  for (std::int64_t step = 1000; step >= 1000; sweeping.transactions++) {
    Clock::time_point step_started = Clock::now();
    Rows row = session.run(
        "SELECT workers_lost, jobs_requeued + jobs_failed + jobs_quarantined FROM pulse.sweep()");
    sweeping.longest_ms = std::max(sweeping.longest_ms, ms(Clock::now() - step_started));
    step = row.number(0, 1);
    sweeping.lost += row.number(0, 0);
    sweeping.recovered += step;
  }
  sweeping.cpu_s = cpu_seconds(backend);
  sweeping.total_s = ms(Clock::now() - started) / 1000;
  return sweeping;
}

void note_claims(Report* report, const char* when, std::vector<double> claims_ms) {
  if (claims_ms.empty()) return;
  std::ranges::sort(claims_ms);
  report->note(format("claims %s: %zu, median %.2f ms, p99 %.2f ms, longest %.2f ms", when,
                      claims_ms.size(), claims_ms[claims_ms.size() / 2],
                      claims_ms[claims_ms.size() * 99 / 100], claims_ms.back()));
}

}  // namespace

void prove_sweep(Report* report) {
  Session session("proof");
  given_orphans(&session);
  std::vector<std::unique_ptr<Claimer>> claimers;
  for (int i = 0; i < kClaimers; i++) claimers.push_back(std::make_unique<Claimer>(i));
  for (auto& claimer : claimers) claimer->start();
  Sweeping sweeping = sweep_all();
  std::vector<double> claims_ms;
  bool broken = false;
  for (auto& claimer : claimers) {
    claimer->stop();
    broken = broken || claimer->is_broken();
    claims_ms.insert(claims_ms.end(), claimer->claims_ms().begin(), claimer->claims_ms().end());
  }
  report->check(!broken && !claims_ms.empty(), "others claim meanwhile");
  report->check(
      sweeping.lost == kDead && sweeping.recovered == kOrphans,
      format("%lld jobs of %lld dead workers are recovered, each once",
             static_cast<long long>(sweeping.recovered), static_cast<long long>(sweeping.lost)));
  report->check(sweeping.total_s <= kMostS,
                format("in %.2f s (at most %.0f) and %d transactions, the longest %.1f ms",
                       sweeping.total_s, kMostS, sweeping.transactions, sweeping.longest_ms));
  report->note(format("the sweeper used %.2f s of processor time", sweeping.cpu_s));
  note_claims(report, "meanwhile", claims_ms);
  bool met = *std::ranges::max_element(claims_ms) <= kAimClaimMs;
  report->note(format("the aim (no claim beyond %.0f ms) is %s", kAimClaimMs,
                      met ? "met" : "missed; other load on the machine shows here"));
  check_verify(&session, report);
}

}  // namespace bench
