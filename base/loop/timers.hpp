// Timers: deadlines of the loop, on a clock that can be replaced. Everything that happens "later"
// in the worker is a timer, so a test moves the clock instead of waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/loop/clock.hpp"

namespace pulse {

class Timer;

// The set of running timers. Owned and used by the loop's thread only.
class Timers {
 public:
  explicit Timers(const Clock& clock) : clock_(clock) {}
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  TimePoint now() const { return clock_.now(); }

  // When the next callback is due.
  std::optional<TimePoint> next_due() const;

  // Runs the due timers, in order. A timer that a callback starts anew for now or earlier runs in
  // the next call, so that every call ends.
  void run_due();

 private:
  friend class Timer;
  using Key = std::pair<TimePoint, std::uint64_t>;

  const Clock& clock_;
  std::uint64_t last_number_ = 0;
  std::map<Key, Timer*> running_;
};

// One deadline of one part: the callback is fixed, the time is not. The destructor stops the timer.
class Timer {
 public:
  Timer(Timers& timers, std::function<void()> callback)
      : timers_(timers), callback_(std::move(callback)) {}
  ~Timer() { stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void start_at(TimePoint due);
  void start_in(std::chrono::nanoseconds delay) { start_at(timers_.now() + delay); }
  // At the end of this iteration of the loop: after all data that is ready now has been read.
  void start_soon() {
    if (!is_running() || due() > timers_.now()) start_at(timers_.now());
  }
  void stop();
  bool is_running() const { return key_.has_value(); }
  TimePoint due() const { return key_->first; }

 private:
  friend class Timers;

  Timers& timers_;
  std::function<void()> callback_;
  std::optional<Timers::Key> key_;
};

}  // namespace pulse
