#include "task/supervised/fd_limit.hpp"

#include <algorithm>

namespace pulse {

FdLimit raise_fd_limit(int slots) noexcept {
  // A task has three pipes and the line to the minder; starting a task takes some more for a
  // moment.
  constexpr rlim_t kPerSlot = 6;
  constexpr rlim_t kBesides = 64;
  FdLimit files;
  files.wanted = kBesides + kPerSlot * static_cast<rlim_t>(slots);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return files;
  files.before = limit.rlim_cur;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(files.wanted, limit.rlim_max));
  files.now = setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : files.before;
  return files;
}

}  // namespace pulse
