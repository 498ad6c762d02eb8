// pulse-minder: the parent of one task. See README.md.
//
// usage: pulse-minder JOB_ID SILENCE_GRACE_MS PATH, with the descriptors of protocol.hpp.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "minder.hpp"
#include "protocol.hpp"

namespace {

constexpr int kUsage = 64;
constexpr int kUnable = 71;

// Nothing but the descriptors of the protocol may reach the task, whatever the worker had open.
void close_strange_descriptors() noexcept {
  if (close_range(pulse::minder::kFdCount, ~0U, 0) == 0) return;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t fd = pulse::minder::kFdCount; fd < limit.rlim_cur; ++fd) close(static_cast<int>(fd));
}

bool keep_own_descriptors_from_task() noexcept {
  for (int fd = pulse::minder::kLineFd; fd < pulse::minder::kFdCount; ++fd) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments, char** environment) {
  constexpr int kArguments = 4;
  if (count != kArguments) return kUsage;
  char* end = nullptr;
  const long long grace_ms = strtoll(arguments[2], &end, 10);
  if (end == arguments[2] || *end != '\0' || grace_ms < 0) return kUsage;
  if (!keep_own_descriptors_from_task()) return kUsage;
  close_strange_descriptors();

  // What is sent to the worker's group, a terminal's ^C and ^Z among it, is not for the minder,
  // which has to work when the worker is stopped or dead.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return kUnable;

  constexpr long long kNanosecondsPerMillisecond = 1'000'000;
  pulse::minder::Minder minder(arguments[3], environment, grace_ms * kNanosecondsPerMillisecond);
  return minder.run() ? 0 : kUnable;
}
