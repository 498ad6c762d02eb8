// Descriptor limit: how many descriptors this process may have open. Each running task takes a few,
// and the usual limit of 1024 is meant for programs that call select(), as a task may.
#pragma once

#include <sys/resource.h>

namespace pulse {

struct FdLimit {
  rlim_t before = 0;  // the soft limit at the start of this process; tasks get this limit
  rlim_t now = 0;
  rlim_t wanted = 0;
};

// Raises the soft limit to the number that `slots` tasks need, as far as the hard limit allows.
FdLimit raise_fd_limit(int slots) noexcept;

}  // namespace pulse
