// pulse-minder: the parent of one task. See README.md.
//
//   usage: pulse-minder [-p] [-n OPEN_FILES] [-w WORKER] JOB_ID SILENCE_GRACE_MS PATH
//          [NAME ARGUMENT...]
// with the descriptors of protocol.hpp. -p: the task may gain privileges; -n: the task's soft limit
// on open descriptors; -w: the worker's pid and start, under which other processes see that this
// minder is still there; NAME: the task's name in its arguments, instead of PATH.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "minder.hpp"
#include "protocol.hpp"

namespace {

constexpr int kUsage = 64;
constexpr int kUnable = 71;

// Newer than some C libraries that this is built with.
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// Only the descriptors of the protocol may reach the task, whichever files the worker had open.
void close_strange_descriptors() noexcept {
  if (syscall(SYS_close_range, pulse::minder::kFdCount, ~0U, 0) == 0) return;
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

// A whole number that is not negative, or -1.
long long number_of(const char* text) noexcept {
  char* end = nullptr;
  const long long number = strtoll(text, &end, 10);
  return end == text || *end != '\0' || number < 0 ? -1 : number;
}

// Holds a name that /proc/net/unix lists while this process lives: the next worker on this machine
// waits for the end of this process before taking the dead worker's jobs. Best effort: without the
// name the next worker does not wait.
void show_presence(const char* worker) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  char* const name = address.sun_path + 1;  // abstract: in no file system
  const int length = snprintf(name, sizeof address.sun_path - 1, "%s%s/%d",
                              pulse::minder::kPresence, worker, static_cast<int>(getpid()));
  if (length < 0 || static_cast<size_t>(length) >= sizeof address.sun_path - 1) return;
  const int presence = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length);
  if (presence >= 0) bind(presence, reinterpret_cast<sockaddr*>(&address), size);
}

// Advances `arguments` behind the options; false for anything that is no option of the minder.
bool read_options(char**& arguments, pulse::minder::TaskRules& rules,
                  const char*& worker) noexcept {
  for (; *arguments != nullptr && **arguments == '-'; ++arguments) {
    if (strcmp(*arguments, "-p") == 0) {
      rules.may_gain_privileges = true;
      continue;
    }
    if (strcmp(*arguments, "-w") == 0 && arguments[1] != nullptr) {
      worker = *++arguments;
      continue;
    }
    if (strcmp(*arguments, "-n") != 0 || arguments[1] == nullptr) return false;
    const long long open_files = number_of(*++arguments);
    if (open_files <= 0) return false;
    rules.open_files = static_cast<rlim_t>(open_files);
  }
  return true;
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__
// The search for leaks hangs in a process that blocks every signal; this process allocates nothing.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int main(int count, char** arguments, char** environment) {
  pulse::minder::TaskRules rules;
  const char* worker = nullptr;
  char** const end = arguments + count;
  constexpr int kMinArguments = 3;
  if (count < 1 || !read_options(++arguments, rules, worker) || end - arguments < kMinArguments) {
    return kUsage;
  }
  const long long grace_ms = number_of(arguments[1]);
  if (grace_ms < 0) return kUsage;
  if (!keep_own_descriptors_from_task()) return kUsage;
  close_strange_descriptors();
  if (worker != nullptr) show_presence(worker);

  // Signals to the worker's group, as a terminal's ^C and ^Z, are not for the minder: the minder
  // has to work when the worker is stopped or dead.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return kUnable;

  constexpr long long kNanosecondsPerMillisecond = 1'000'000;
  pulse::minder::Minder minder(arguments + 2, environment, rules,
                               grace_ms * kNanosecondsPerMillisecond);
  return minder.run() ? 0 : kUnable;
}
