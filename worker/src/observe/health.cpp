#include "observe/health.hpp"

namespace pulse {

void Health::publish(const WorkerState& state, TimePoint now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) seen_ = {state, now};
}

Health::Seen Health::read() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

std::string why_not_alive(const Health::Seen& seen, TimePoint now) {
  const auto silent = std::chrono::duration_cast<Duration>(now - seen.last_iteration);
  if (silent <= kMaxIteration) return {};
  return "the loop has been silent for " + to_string(silent);
}

std::string why_not_ready(const Health::Seen& seen, TimePoint now) {
  std::string reason = why_not_alive(seen, now);
  return reason.empty() ? why_not_ready(seen.state, now) : reason;
}

std::string why_not_ready(const WorkerState& state, TimePoint now) {
  if (state.is_draining) return "draining";
  if (!state.is_established) return "not registered";
  if (!state.program_refusal.empty()) return "new code was refused: " + state.program_refusal;
  if (!state.databases.empty()) {
    std::string reason;
    for (const WorkerState& each : state.databases) {
      const std::string one = why_not_ready(each, now);
      if (one.empty()) return {};
      reason += (reason.empty() ? "" : "; ") + each.database + ": " + one;
    }
    return reason;
  }
  const auto age = std::chrono::duration_cast<Duration>(now - state.last_good);
  if (age < state.silence_limit) return {};
  return "no heartbeat was answered for " + to_string(age);
}

}  // namespace pulse
