#include "task_start.hpp"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol.hpp"

namespace pulse::minder {
namespace {

[[noreturn]] void give_up(int failure_pipe, Report::Stage stage, int error) noexcept {
  const StartFailure failure{stage, error};
  // Nothing is left to do if this fails: the minder then sees an exit without a start.
  const ssize_t written = write(failure_pipe, &failure, sizeof failure);
  _exit(written == sizeof failure ? 127 : 126);
}

// Changes the soft limit only, so that a task can raise it to the limit of the worker's user.
template <typename Resource>  // an enum in one C library, a number in another
bool lower_limit(Resource resource, rlim_t soft) noexcept {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return false;
  limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
  return setrlimit(resource, &limit) == 0;
}

bool prepare(pid_t minder, const TaskRules& rules) noexcept {
  if (setsid() < 0) return false;
  // A second line of defence: if the minder is killed, the task is killed too. The signal does not
  // reach the task's children, and a change of credentials clears the setting, so nothing relies on
  // the signal.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  if (getppid() != minder) _exit(126);
  if (!rules.may_gain_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  // A crash leaves no payload on a disk, unless the task asks for dumps.
  if (!lower_limit(RLIMIT_CORE, 0)) return false;
  return rules.open_files == 0 || lower_limit(RLIMIT_NOFILE, rules.open_files);
}

void reset_signals() noexcept {
  // A sigaction of the kernel: all zero is SIG_DFL. The C library's own function spares two signals
  // that the library uses itself, and the worker may have been started with both ignored.
  const unsigned long by_default[4] = {};
  constexpr unsigned long kMaskBytes = 8;
  // Fails for SIGKILL and SIGSTOP, which always have the default.
  for (int number = 1; number < NSIG; ++number) {
    syscall(SYS_rt_sigaction, number, by_default, nullptr, kMaskBytes);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The name is executed, not the descriptor: an interpreter must be able to open the script by name,
// and a close-on-exec descriptor is gone by then. So see that the name still means the same file.
bool names_checked_file(const char* name) noexcept {
  struct stat named {};
  struct stat checked {};
  return fstatat(kDirectoryFd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstat(kFileFd, &checked) == 0 && named.st_dev == checked.st_dev &&
         named.st_ino == checked.st_ino;
}

}  // namespace

int64_t boot_now() noexcept {
  constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kNanosecondsPerSecond + now.tv_nsec;
}

void become_task(pid_t minder, char** command, char** environment, const TaskRules& rules,
                 int64_t deadline, int failure_pipe) noexcept {
  if (!prepare(minder, rules)) give_up(failure_pipe, Report::kPrepare, errno);
  if (fchdir(kWorkDirectoryFd) != 0) give_up(failure_pipe, Report::kWorkDirectory, errno);

  const char* path = command[0];
  const char* slash = strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  if (!names_checked_file(name)) give_up(failure_pipe, Report::kChanged, ESTALE);

  // Through the minder's descriptor of the directory. The directory stays open in the minder as
  // long as the task runs, so an interpreter can open the script and a script can find neighbours
  // by $0. The task inherits no descriptor of the directory, and no folder above can be exchanged
  // in between.
  char executable[NAME_MAX + 64];
  const int length = snprintf(executable, sizeof executable, "/proc/%d/fd/%d/%s",
                              static_cast<int>(minder), kDirectoryFd, name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof executable) {
    give_up(failure_pipe, Report::kExecute, ENAMETOOLONG);
  }
  reset_signals();
  // All of this may have been stopped for long, by a freezer or a suspended machine.
  if (deadline != 0 && boot_now() >= deadline) give_up(failure_pipe, Report::kTooLate, ETIME);
  execve(executable, command[1] != nullptr ? command + 1 : command, environment);
  give_up(failure_pipe, Report::kExecute, errno);
}

}  // namespace pulse::minder
