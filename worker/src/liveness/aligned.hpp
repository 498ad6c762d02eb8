// Aligned moments: deadlines of several parts that fall due together, so that the loop wakes once.
#pragma once

#include "base/loop/clock.hpp"

namespace pulse {

// The last moment up to `at` that is a multiple of `step` on the clock. Timers of one step that are
// set to such moments fall due in one iteration of the loop.
inline TimePoint aligned(TimePoint at, std::chrono::nanoseconds step) {
  return at - at.time_since_epoch() % step;
}

}  // namespace pulse
