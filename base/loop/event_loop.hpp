// Event loop: the only loop of the process: sockets, child processes, signals and timers, all on
// one thread that owns all state.
//
// Invariants:
// - Timers run on CLOCK_BOOTTIME, which also counts the time a machine sleeps.
// - Each iteration runs due timers after reading all readable descriptors: a worker that was
//   stopped for a minute finds the answers of that minute before any deadline of an answer.
// - `mutex_` guards `posted_`; only the loop's thread uses everything else.
#pragma once

#include <uv.h>

#include <functional>
#include <mutex>
#include <vector>

#include "base/loop/timers.hpp"

namespace pulse {

class EventLoop {
 public:
  explicit EventLoop(const Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  uv_loop_t* uv() { return &loop_; }
  Timers& timers() { return timers_; }

  // Runs `callback` on the loop's thread. May be called from any thread; the only function here
  // that may. Callbacks that come after the last iteration of the loop are dropped.
  void post(std::function<void()> callback);

  // Called at the end of each iteration.
  std::function<void()> on_iteration;

  // Iterates until stop() is called.
  void run();
  void stop();

 private:
  void run_posted();
  void end_iteration();
  void arm_timer();

  uv_loop_t loop_{};
  uv_prepare_t before_poll_{};
  uv_check_t after_poll_{};
  uv_poll_t timer_ready_{};
  uv_async_t posted_ready_{};
  int timer_descriptor_ = -1;
  Timers timers_;

  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
};

}  // namespace pulse
