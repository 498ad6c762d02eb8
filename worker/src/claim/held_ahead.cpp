// The claimer's jobs that wait for a slot: which of them go back, and when.
#include <algorithm>

#include "claim/claimer.hpp"

namespace pulse {

// Jobs of which no code has run yet, and jobs of which only the task knows whether code has run.
std::vector<ClaimKey> Claimer::waiting_jobs() const {
  std::vector<ClaimKey> claims = held_.in_state(HeldJob::State::prefetched);
  if (!take_back) return claims;
  const std::vector<ClaimKey> running = held_.in_state(HeldJob::State::running);
  claims.insert(claims.end(), running.begin(), running.end());
  return claims;
}

// Releases each job that has waited for a slot for half a heartbeat interval: another worker may
// have a free slot, and jobs take longer than was estimated.
void Claimer::release_overdue() {
  const auto& registration = heartbeat_.registration();
  if (!registration) return;
  const Duration bound = registration->heartbeat_interval / 2;
  const std::size_t running = held_.count(HeldJob::State::running) +
                              held_.count(HeldJob::State::revoked) +
                              (elsewhere ? elsewhere().running : 0);
  std::size_t starting = config_.concurrency - std::min(config_.concurrency, running);
  std::optional<TimePoint> next;
  for (const ClaimKey claim : waiting_jobs()) {
    const HeldJob& job = *held_.find(claim);
    if (job.state == HeldJob::State::prefetched && starting > 0) {
      --starting;
      if (!next) next = timers_.now() + bound;
      continue;
    }
    const TimePoint limit = job.arrived_at + bound;
    if (limit <= timers_.now()) {
      if (!may_go_back(claim)) continue;
      prefetch_.job_took(bound);
      finisher_.add(Outcome::released(claim, "prefetched for too long"));
    } else if (!next || limit < *next) {
      next = limit;
    }
  }
  if (next) prefetch_limit_.start_at(*next);
}

}  // namespace pulse
