// Minder line: the worker's side of one pulse-minder: its start, the line to it, and its death.
//
// Invariants (only the loop's thread reads and writes):
// - From start() until let_go() the line owns itself (`self_`), even if the owner lets go of it
//   before. let_go() comes when the minder is reaped and nothing of the task is left.
// - `has_reported_end_` is set once: after the report of an end, or after on_lost.
// - After hang_up() no callback of the listener comes.
// - `ending_orphans_` is the number of lines that are ending orphans.
#pragma once

#include <sys/types.h>
#include <uv.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop/boot_clock.hpp"
#include "base/loop/loop_handle.hpp"
#include "base/loop/unique_fd.hpp"
#include "minder/protocol.hpp"
#include "minder/task_start.hpp"

namespace pulse {

class MinderLine : public std::enable_shared_from_this<MinderLine> {
 public:
  struct Plan {
    std::string minder_path;
    minder::TaskRules rules;
    std::vector<std::string> arguments;  // after the options
    std::vector<std::string> environment;
    // The descriptors that the minder inherits, in the protocol's order, without the line; used
    // during start() only.
    int stdin_fd = -1;
    int stdout_fd = -1;
    int stderr_fd = -1;
    int pulse_fd = -1;
    int directory_fd = -1;
    int file_fd = -1;
    int work_directory_fd = -1;
    // How long an order to kill may take before the minder itself is taken for stuck.
    std::chrono::milliseconds patience{0};
  };
  struct Listener {
    std::function<void(const minder::Report&)> on_report;
    // The minder ended without telling how the task ended. The rest of the task is being killed.
    std::function<void()> on_lost;
  };

  // Returns a libuv code; on success `started` is filled.
  static int start(uv_loop_t* loop, const Plan& plan, BootClock::time_point first_deadline,
                   Listener listener, std::shared_ptr<MinderLine>& started);

  // Whether orphans of a dead minder are being ended: while one is alive the dead have to stay, so
  // that a fork bomb gets no free places under a limit on processes.
  static bool is_ending_orphans() noexcept { return ending_orphans_ > 0; }

  MinderLine(const MinderLine&) = delete;
  MinderLine& operator=(const MinderLine&) = delete;

  void set_deadline(BootClock::time_point deadline) noexcept;
  void terminate(std::chrono::milliseconds grace) noexcept;
  // No report comes any more; the closed line makes the minder end a task that runs on.
  void hang_up() noexcept;

 private:
  MinderLine(uv_loop_t* loop, Listener listener, std::chrono::milliseconds patience) noexcept;

  int spawn(const Plan& plan, int line_fd);
  int watch_line();
  void send(minder::Order::Kind kind, BootClock::time_point at) noexcept;
  void read_reports();
  void on_exit(std::int64_t exit_code, int signal);
  void expect_exit_within(std::chrono::milliseconds limit) noexcept;
  void take_for_stuck() noexcept;
  void kill_orphans() noexcept;
  void run_timer_in(std::chrono::milliseconds delay, uv_timer_cb callback) noexcept;
  void let_go() noexcept;

  uv_loop_t* const loop_;
  const Listener listener_;  // kept to the end: a callback of the listener may let go of the line
  bool is_listening_ = true;
  const std::chrono::milliseconds patience_;
  UniqueFd line_;
  LoopHandle<uv_poll_t> line_watch_;  // closed before line_
  LoopHandle<uv_process_t> process_;
  LoopHandle<uv_timer_t> timer_;  // the minder's last moment, then the killing of orphans
  bool has_reported_end_ = false;
  BootClock::time_point stuck_at_ = BootClock::time_point::max();
  int orphan_checks_ = 0;
  inline static int ending_orphans_ = 0;  // how many lines are ending orphans
  std::shared_ptr<MinderLine> self_;      // from start() until let_go()
};

}  // namespace pulse
