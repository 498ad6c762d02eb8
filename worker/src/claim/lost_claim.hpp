// A claim whose reply was lost, and how its jobs end. Where the reply did not fit into memory, the
// jobs go back and are claimed one by one, so that only the job that is too large fails: it waits
// for a retry after the backoff, and for a larger worker. The server may have undone the claim
// because the reply could not be sent; then the worker claims the job once more without documents.
#pragma once

#include <string>

#include "base/log/log.hpp"
#include "base/postgres/connection.hpp"
#include "jobs/outcome.hpp"
#include "session/statements.hpp"

namespace pulse {

class LostClaim {
 public:
  // Notes the lost reply; says whether the next claim has to ask for less.
  bool take(std::size_t asked, const ConnectionLost& lost, Log& log) {
    const bool is_for_memory = lost.is_for_want_of_memory();
    is_too_large_ = is_for_memory && asked == 1;
    if (is_for_memory) {
      log.warning("claim_too_large", {{"asked", static_cast<std::int64_t>(asked)},
                                      {"reason", lost.reason},
                                      {"hint", "give this worker more memory"}});
    }
    return is_for_memory;
  }
  // held() has found this number of the lost claim's jobs with this worker.
  void take_found(std::int64_t jobs) { is_undone_ = is_too_large_ && jobs == 0; }

  const Statement& next_claim() const {
    return is_undone_ ? statements::kClaimBare : statements::kClaim;
  }
  // Whether a claim that comes now is without documents: once.
  bool take_bare() { return std::exchange(is_undone_, false); }

  Outcome end_of(ClaimKey claim, const std::string& worker) const {
    if (!is_too_large_) return Outcome::released(claim, "the reply of its claim was lost");
    return Outcome::failed(claim, worker + " has no memory for this job's documents",
                           /*may_retry=*/true, "no memory for its documents");
  }
  // Another worker may have taken the large job meanwhile: a small job is not at fault.
  Outcome end_of_bare(ClaimKey claim, std::int64_t bytes, const std::string& worker) const {
    constexpr std::int64_t kSmall = 1'000'000;
    if (bytes < kSmall) return Outcome::released(claim, "claimed without its documents");
    return end_of(claim, worker);
  }

 private:
  bool is_too_large_ = false;  // a job alone
  bool is_undone_ = false;
};

}  // namespace pulse
