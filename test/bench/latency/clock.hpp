// Milliseconds of a benchmark, and when another session has come to wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "session.hpp"

namespace bench {

using Clock = std::chrono::steady_clock;

inline double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// Looks on from a session of its own. Without it every other sample would meet the waiter on its
// way to wait, whichever of two threads the processor went to first.
class Watcher {
 public:
  explicit Watcher(std::int64_t process) : session_("latency_watcher"), process_(process) {
    session_.prepare(kIsWaiting);
  }
  void wait_until_waiting() {
    while (session_.run(kIsWaiting, {process_}).count() == 0) {
    }
  }

 private:
  inline static const std::string kIsWaiting =
      "SELECT FROM pg_stat_get_activity($1::int) WHERE wait_event_type = 'Extension'";

  Session session_;
  std::int64_t process_;
};

}  // namespace bench
