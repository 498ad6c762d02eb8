// A clock that stands still until a test moves it, with the timers on it.
#pragma once

#include "base/loop/timers.hpp"

namespace pulse {

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(std::chrono::nanoseconds by) { now_ += by; }
  void move_to(TimePoint time) { now_ = time; }

 private:
  // Not zero: a point in time that was never set must not look like now.
  TimePoint now_ = TimePoint(std::chrono::hours(1));
};

// Runs what is due now, and what that makes due now.
inline void settle(Timers& timers) {
  while (timers.next_due() && *timers.next_due() <= timers.now()) timers.run_due();
}

// Lets time pass, stopping at every deadline on the way.
inline void pass(FakeClock& clock, Timers& timers, std::chrono::nanoseconds by) {
  const TimePoint end = clock.now() + by;
  settle(timers);
  while (timers.next_due() && *timers.next_due() <= end) {
    clock.move_to(*timers.next_due());
    settle(timers);
  }
  clock.move_to(end);
  settle(timers);
}

}  // namespace pulse
