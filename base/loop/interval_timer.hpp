// Calls back from the loop again and again, with the same pause between; so the loop
// iterates at least as often.
#pragma once

#include <functional>

#include "base/loop/duration.hpp"
#include "base/loop/timers.hpp"

namespace pulse {

class IntervalTimer {
 public:
  IntervalTimer(Timers& timers, Duration pause, std::function<void()> callback)
      : pause_(pause), callback_(std::move(callback)), timer_(timers, [this] { run(); }) {
    timer_.start_in(pause_);
  }

 private:
  void run() {
    timer_.start_in(pause_);
    if (callback_) callback_();
  }

  const Duration pause_;
  const std::function<void()> callback_;
  Timer timer_;
};

}  // namespace pulse
