// Minder: starts one task, watches the task and the line to the worker, and lets nothing of the
// task survive.
//
// Ends the task when the deadline of the last ping has passed (the worker is stopped), at once when
// the line closes (the worker is dead or has hung up), and when the worker says so.
//
// Invariants (one thread, no allocation that grows, no C++ runtime):
// - Exactly one report of an end is sent: not started, exited or signalled.
// - `is_terminating_` and the first `stopped_by_` stay once set; `kill_at_` only moves to an
//   earlier time, and is 0 once SIGKILL is sent.
// - The minder exits with 0 only when no process of the task is left.
#pragma once

#include <sys/types.h>

#include <stdint.h>

#include "protocol.hpp"
#include "task_start.hpp"

namespace pulse::minder {

class Minder {
 public:
  // `command`: the path, then the task's arguments, beginning with its name; without arguments, the
  // path is the name.
  Minder(char** command, char** environment, const TaskRules& rules,
         int64_t silence_grace_ns) noexcept
      : command_(command),
        environment_(environment),
        rules_(rules),
        silence_grace_ns_(silence_grace_ns) {}

  // Returns when nothing of the task is left; false when the minder could not do the work (then
  // nothing was started, or the worker takes over).
  bool run() noexcept;

 private:
  bool open_watches() noexcept;
  bool is_too_late() noexcept;
  bool start_task() noexcept;
  void iterate() noexcept;
  void read_orders() noexcept;
  void read_start() noexcept;
  void reap() noexcept;
  void check_time() noexcept;
  void arm_timer() noexcept;
  void terminate(Report::StoppedBy cause, int64_t kill_at) noexcept;
  void signal_group(int number) const noexcept;
  void report(Report::Kind kind, int value, int detail) noexcept;
  void kill_leftovers() noexcept;

  char** const command_;
  char** const environment_;
  const TaskRules rules_;
  const int64_t silence_grace_ns_;

  int child_fd_ = -1;  // signalfd: a child ended
  int timer_fd_ = -1;  // timerfd on CLOCK_BOOTTIME, absolute
  int start_fd_ = -1;  // the child's failure to become the task, or success by closing
  bool is_line_open_ = true;

  pid_t task_ = 0;
  bool has_ended_ = false;
  // Of the last ping; 0 before the first ping, and once the deadline has passed.
  int64_t deadline_ = 0;
  bool is_terminating_ = false;
  int64_t kill_at_ = 0;  // while terminating; 0 once SIGKILL is sent
  Report::StoppedBy stopped_by_ = Report::kNobody;
};

}  // namespace pulse::minder
