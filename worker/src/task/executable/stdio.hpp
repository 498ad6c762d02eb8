// Task stdio: the descriptors that a task is started with, and the ends that stay here.
#pragma once

#include <string_view>

#include "base/loop/unique_fd.hpp"

namespace pulse {

struct TaskStdio {
  enum class Output { discarded, read, inherited };

  // The task's. stdin is a file in memory rather than a pipe: a task that does not read stdin does
  // not block the loop, and no unread byte waits in the worker. Discarded stdout is /dev/null;
  // inherited stdout is this process's own, and so is stderr then.
  UniqueFd stdin_fd;
  UniqueFd stdout_fd;
  UniqueFd stderr_fd;
  UniqueFd pulse_fd;

  // Ours.
  UniqueFd stdout_reader;
  UniqueFd stderr_reader;
  UniqueFd pulse_reader;

  // Returns 0 or an errno.
  int open(std::string_view stdin_text, Output output);
};

}  // namespace pulse
