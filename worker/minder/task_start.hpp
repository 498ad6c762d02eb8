// Task start: the task's own side of the start: from fork to execve.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <stdint.h>

namespace pulse::minder {

// The child writes a failure into the pipe when it cannot become the task. The pipe closes on
// success.
struct StartFailure {
  int stage;  // Report::Stage
  int error;  // errno
};

// The worker's rules for the tasks that it starts.
struct TaskRules {
  bool may_gain_privileges = false;  // by setuid and file capabilities: sudo works
  rlim_t open_files = 0;             // the soft RLIMIT_NOFILE; 0: the minder's own
};

// CLOCK_BOOTTIME in nanoseconds.
int64_t boot_now() noexcept;

// Makes this freshly forked child the task, before `deadline` unless `deadline` is 0; never
// returns. The last component of the path, command[0], names the file in kDirectoryFd.
[[noreturn]] void become_task(pid_t minder, char** command, char** environment,
                              const TaskRules& rules, int64_t deadline, int failure_pipe) noexcept;

}  // namespace pulse::minder
