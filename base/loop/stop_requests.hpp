// Wishes to stop, from any thread and from signal handlers, heard by a loop that runs now or later.
#pragma once

#include <functional>

#include "base/loop/event_loop.hpp"
#include "base/loop/loop_handle.hpp"
#include "base/loop/unique_fd.hpp"

namespace pulse {

class StopRequests {
 public:
  StopRequests();

  void add() noexcept;

  // Calls back from the loop for each wish, until the result is destroyed; but for no more than two
  // at once, which mean "stop" and "at once". The callback must outlive the result.
  LoopHandle<uv_poll_t> listen(EventLoop& loop, const std::function<void()>& callback);

 private:
  void take();

  UniqueFd counter_;
  const std::function<void()>* callback_ = nullptr;
};

}  // namespace pulse
