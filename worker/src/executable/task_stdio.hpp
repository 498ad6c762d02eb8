// The descriptors a task is started with, and the ends that stay here.
#pragma once

#include <string_view>

#include "loop/unique_fd.hpp"

namespace pulse {

struct TaskStdio {
  enum class Output { discarded, read, inherited };

  // The task's. stdin is a file in memory rather than a pipe: a task that reads none of it does not
  // block the loop, and nothing of it waits there. stdout is /dev/null where it is discarded, and
  // this process's own where it is inherited, as stderr is then.
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
