// Boot clock: time since boot, suspended time included: the clock of every deadline of the worker.
//
// A clock that stands still while the machine is suspended would let a worker believe, after the
// machine wakes, that claims are still good.

#pragma once

#include <chrono>

namespace pulse {

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

}  // namespace pulse
