// A claim whose reply was lost, and how what it has brought ends. Where the reply did not fit into
// memory, its jobs go back and are claimed one by one, so that only the one that is too large
// fails: it waits for its backoff, and for a larger worker.
#pragma once

#include <string>

#include "database/connection.hpp"
#include "jobs/outcome.hpp"
#include "log/log.hpp"

namespace pulse {

class LostClaim {
 public:
  // Whether the next claim has to ask for less.
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

  Outcome end_of(ClaimKey claim, const std::string& worker) const {
    if (!is_too_large_) return Outcome::released(claim, "the reply of its claim was lost");
    return Outcome::failed(claim, worker + " has no memory for this job's documents",
                           /*may_retry=*/true, "no memory for its documents");
  }

 private:
  bool is_too_large_ = false;  // a job alone
};

}  // namespace pulse
