// Whether the terminal that the log is written to has been closed: a window, or an ssh session.
#pragma once

#include <functional>

#include "base/loop/event_loop.hpp"
#include "base/loop/loop_handle.hpp"
#include "base/loop/unique_fd.hpp"

namespace pulse {

// The kernel's signal of a closed terminal, SIGHUP, also is an operator's wish to read files again,
// and reaches only some of the processes that write to the terminal. A descriptor tells all
// processes.
class TerminalWatch {
 public:
  // Calls back once. `terminal` stays the caller's, with all flags: a shell may share them.
  TerminalWatch(EventLoop& loop, int terminal, std::function<void()> on_closed);
  TerminalWatch(const TerminalWatch&) = delete;
  TerminalWatch& operator=(const TerminalWatch&) = delete;

 private:
  void check();

  const std::function<void()> on_closed_;
  UniqueFd events_;  // of the terminal; libuv would make the terminal itself non-blocking
  LoopHandle<uv_poll_t> ready_;
};

}  // namespace pulse
