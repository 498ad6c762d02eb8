#include <algorithm>
#include <future>
#include <latch>
#include <set>
#include <utility>

#include "proofs.hpp"

namespace bench {
namespace {

constexpr int kJobs = 100000;
constexpr int kClaimers = 8;
constexpr int kBatch = 100;

struct Claims {
  Ids ids;
  std::set<std::int64_t> tokens;
  int claims = 0;
  int second_attempts = 0;
};

// Ends at the first empty claim, so each claimer also sees that nothing is left.
Claims claim_all(int number, std::latch* start) {
  Session session("claimer_" + std::to_string(number));
  std::int64_t worker = register_worker(&session, "claimer", "no_op");
  Claims claims;
  start->arrive_and_wait();
  for (;;) {
    Rows rows = session.run("SELECT id, token, attempts FROM pulse.claim($1, $2)",
                            {worker, std::int64_t{kBatch}});
    if (rows.count() == 0) return claims;
    claims.claims++;
    for (int i = 0; i < rows.count(); i++) {
      claims.ids.push_back(rows.number(i, 0));
      claims.tokens.insert(rows.number(i, 1));
      claims.second_attempts += rows.number(i, 2) != 1;
    }
  }
}

}  // namespace

void prove_claimed_once(Report* report) {
  Session session("proof");
  add_many(&session, "'no_op', NULL, NULL, NULL, NULL, NULL, i % 3, NULL", kJobs);
  std::latch start(kClaimers);
  std::vector<std::future<Claims>> claimers;
  for (int i = 0; i < kClaimers; i++)
    claimers.push_back(std::async(std::launch::async, claim_all, i, &start));

  Ids ids;
  std::set<std::int64_t> tokens;
  std::size_t shared_tokens = 0;
  int claims = 0, second_attempts = 0, idle_claimers = 0;
  for (auto& claimer : claimers) {
    Claims part = claimer.get();
    ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    shared_tokens += part.tokens.size();
    tokens.merge(part.tokens);
    claims += part.claims;
    second_attempts += part.second_attempts;
    idle_claimers += part.claims == 0;
  }
  shared_tokens -= tokens.size();
  std::ranges::sort(ids);
  std::size_t distinct = static_cast<std::size_t>(std::ranges::unique(ids).begin() - ids.begin());

  report->check(ids.size() == kJobs && distinct == kJobs,
                format("%d jobs, %d claimers of %d: %zu claims of jobs, %zu distinct", kJobs,
                       kClaimers, kBatch, ids.size(), distinct));
  report->check(second_attempts == 0, "each was handed out as its first attempt");
  report->check(shared_tokens == 0, format("%d claims, no token twice", claims));
  report->check(idle_claimers == 0, "each claimer got some");
  std::int64_t running =
      session.number("SELECT count(*) FROM pulse.job WHERE state = 'running' AND attempts = 1");
  report->check(running == kJobs,
                format("%lld are running, once", static_cast<long long>(running)));
  check_verify(&session, report);
}

}  // namespace bench
