// Start pace: the time that starts of tasks may take of one iteration of the loop, because a start
// may wait for an exec. Beats, pings and outcomes come in between.
//
// Invariants (only the loop's thread reads and writes):
// - `spent_` is how long starts have taken since the last call of `go_on`, which comes in the next
//   iteration after a start.
#pragma once

#include <functional>
#include <utility>

#include "base/loop/duration.hpp"
#include "base/loop/timers.hpp"

namespace pulse {

class StartPace {
 public:
  // `go_on` starts the tasks that the last iteration had no time for.
  StartPace(Timers& timers, std::function<void()> go_on)
      : next_iteration_(timers, [this, go_on = std::move(go_on)] {
          spent_ = {};
          go_on();
        }) {}

  bool has_time() const { return spent_ < kMax; }
  void spend(std::chrono::nanoseconds time) {
    spent_ += time;
    next_iteration_.start_soon();
  }

 private:
  static constexpr Duration kMax = std::chrono::milliseconds(25);

  std::chrono::nanoseconds spent_{};
  Timer next_iteration_;
};

}  // namespace pulse
