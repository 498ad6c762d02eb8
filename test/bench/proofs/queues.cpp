#include <chrono>
#include <thread>

#include "proofs.hpp"
#include "queue_log.hpp"
#include "queue_traffic.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProducers = 4;
constexpr int kClaimers = 6;
constexpr int kJobs = 20000;
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kVerify = std::chrono::seconds(2);
// Nothing ended for so long although jobs are there: they are stranded.
constexpr auto kStranded = std::chrono::seconds(10);
constexpr auto kMost = std::chrono::seconds(120);

struct Watched {
  int verified = 0;
  int verified_broken = 0;
  bool drained = false;
  std::string first_broken;
};

// Looks on until everything was added and ended, or nothing moves any more.
Watched watch(Session* session, const Traffic& traffic) {
  Watched watched;
  Clock::time_point start = Clock::now(), moved = start, verified = start;
  std::int64_t ended = 0;
  for (;;) {
    std::this_thread::sleep_for(kLook);
    Clock::time_point now = Clock::now();
    if (traffic.ended != ended) moved = now;
    ended = traffic.ended;
    bool all_added = traffic.producing == 0;
    if (all_added && session->number("SELECT count(*) FROM pulse.job") == 0) {
      watched.drained = true;
      return watched;
    }
    if (now - moved > kStranded || now - start > kMost) return watched;
    if (now - verified < kVerify) continue;
    verified = now;
    Rows broken = session->run("SELECT promise || ' ' || detail FROM pulse.verify() LIMIT 1");
    watched.verified++;
    watched.verified_broken += broken.count();
    if (broken.count() && watched.first_broken.empty()) watched.first_broken = broken.text(0, 0);
  }
}

// Ends the claimers, also when looking on fails.
struct StopClaiming {
  Traffic* traffic;
  ~StopClaiming() { traffic->stop_claiming = true; }
};

Watched run_traffic(Session* session, Traffic* traffic) {
  traffic->producing = kProducers;
  std::vector<std::jthread> threads;
  StopClaiming at_end = {traffic};
  for (int i = 0; i < kClaimers; i++) threads.emplace_back(claim_and_end, traffic, 100 + i);
  for (int i = 0; i < kProducers; i++)
    threads.emplace_back(produce, traffic, 1 + i, kJobs / kProducers);
  return watch(session, *traffic);
}

void note_stranded(Session* session, Report* report) {
  Rows rows = session->run(
      "SELECT format('%s: %s parked, %s ready, %s running, lowest job %s', queue_name,"
      "   count(*) FILTER (WHERE state = 'parked'), count(*) FILTER (WHERE state = 'ready'),"
      "   count(*) FILTER (WHERE state = 'running'), min(id))"
      " FROM pulse.job GROUP BY queue_name ORDER BY count(*) DESC LIMIT 10");
  for (int i = 0; i < rows.count(); i++) report->note(std::string(rows.text(i, 0)));
}

// Every job that was added ended once: completed as the claimers know, or kept as the server does.
void check_books(Session* session, const Traffic& traffic, Report* report) {
  std::set<std::int64_t> ended = traffic.completed_ids;
  Rows kept = session->run("SELECT id FROM pulse.finished_job");
  int twice = 0;
  for (int i = 0; i < kept.count(); i++) twice += !ended.insert(kept.number(i, 0)).second;
  report->check(
      ended == traffic.added_ids && twice == 0,
      format("%zu jobs were added; %zu completed, %d failed or cancelled, %d ended twice",
             traffic.added_ids.size(), traffic.completed_ids.size(), kept.count(), twice));
}

void note_mix(const Traffic& traffic, Report* report) {
  report->note(format("%lld ends; of them %lld failed, %lld released, %lld snoozed",
                      static_cast<long long>(traffic.ended), static_cast<long long>(traffic.failed),
                      static_cast<long long>(traffic.released),
                      static_cast<long long>(traffic.snoozed)));
  report->note(format("%lld cancels, %lld transactions rolled back, %lld pauses",
                      static_cast<long long>(traffic.cancelled),
                      static_cast<long long>(traffic.rolled_back),
                      static_cast<long long>(traffic.paused)));
}

}  // namespace

void prove_queues(Report* report) {
  Session session("proof");
  Traffic traffic;
  for (const auto& [queue, most] : traffic.concurrency())
    if (most > 1) session.run("SELECT pulse.set_queue($1, $2)", {queue, std::int64_t{most}});
  QueueLog log(&session);
  Clock::time_point start = Clock::now();
  Watched watched = run_traffic(&session, &traffic);
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  log.replay(traffic.concurrency());

  report->check(watched.drained,
                format("%d jobs in %d queues, %d producers, %d claimers, %.0f s, no sweep: %s",
                       kJobs, kQueues, kProducers, kClaimers, seconds,
                       watched.drained ? "none stranded" : "not drained"));
  if (!watched.drained) note_stranded(&session, report);
  note_mix(traffic, report);
  report->check(traffic.first_error.empty() && traffic.refused == 0,
                "no call failed or was refused " + traffic.first_error);
  report->check(traffic.overlaps == 0 && traffic.repeats == 0,
                "concurrency by the claimers' own clocks was kept, no claim came twice");
  report->check(
      log.ran_too_many() == 0,
      format("concurrency in commit order was kept in each of %lld commits, %lld starts",
             static_cast<long long>(log.commits()), static_cast<long long>(log.starts())));
  report->check(
      log.gave_too_many() == 0,
      "no commit left more jobs open and running than the queue may run " + log.first_breach());
  report->check(log.live() == session.number("SELECT count(*) FROM pulse.job"),
                "the log and the table agree on what is live");
  check_books(&session, traffic, report);
  report->check(watched.verified > 0 && watched.verified_broken == 0,
                format("verify() was empty %d times meanwhile %s", watched.verified,
                       watched.first_broken.c_str()));
  check_verify(&session, report);
}

}  // namespace bench
