// How many descriptors this process may have open. Each running task takes a few, and the usual
// limit of 1024 is meant for programs that call select(), such as a task may be.
#pragma once

#include <sys/resource.h>

namespace pulse {

struct FdLimit {
  rlim_t before = 0;  // the soft limit this process was started with, which is the tasks' too
  rlim_t now = 0;
  rlim_t wanted = 0;
};

// Raises the soft limit to what so many slots need, as far as the hard one lets it.
FdLimit raise_fd_limit(int slots) noexcept;

}  // namespace pulse
