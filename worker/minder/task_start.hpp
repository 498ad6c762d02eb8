// The task's own side of its start: from fork to execve.
#pragma once

#include <sys/types.h>

namespace pulse::minder {

// What the child writes into the pipe when it cannot become the task. The pipe closes on success.
struct StartFailure {
  int stage;  // Report::Stage
  int error;  // errno
};

// Turns this freshly forked child into the task; never returns. `path` is for people: argv[0], and
// its last component names the file in kDirectoryFd.
[[noreturn]] void become_task(pid_t minder, const char* path, char** environment,
                              int failure_pipe) noexcept;

}  // namespace pulse::minder
