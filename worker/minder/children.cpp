#include "children.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace pulse::minder {
namespace {

struct PidList {
  pid_t* pids;
  size_t capacity;
  size_t count;

  void add(pid_t pid) noexcept {
    if (count < capacity) pids[count++] = pid;
  }
};

// Adds the numbers of one /proc/…/children file; false when the file does not exist.
bool add_numbers(const char* path, PidList& list) noexcept {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[4096];
  pid_t number = 0;
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;) {
    for (ssize_t i = 0; i < size; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        number = number * 10 + (buffer[i] - '0');
      } else if (number != 0) {
        list.add(number);
        number = 0;
      }
    }
  }
  close(fd);
  if (number != 0) list.add(number);
  return true;
}

// Calls `visit` with each name in `path` that is a number; false when `path` cannot be read.
template <typename Visit>
bool for_each_number(const char* path, Visit visit) noexcept {
  DIR* directory = opendir(path);
  if (directory == nullptr) return false;
  while (const dirent* entry = readdir(directory)) {
    const long number = strtol(entry->d_name, nullptr, 10);
    if (number > 0) visit(static_cast<pid_t>(number));
  }
  closedir(directory);
  return true;
}

// The parent of a process, 0 when the process is gone.
pid_t parent_of(pid_t pid) noexcept {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The command, in parentheses, may hold anything; after the last parenthesis stand state and
  // parent.
  const char* command_end = strrchr(text, ')');
  if (command_end == nullptr || strlen(command_end) < 4) return 0;
  return static_cast<pid_t>(strtol(command_end + 4, nullptr, 10));
}

}  // namespace

size_t list_children(pid_t* pids, size_t capacity) noexcept {
  PidList list{pids, capacity, 0};
  bool has_files = false;
  // The kernel lists children by the thread that started or adopted the child.
  for_each_number("/proc/self/task", [&](pid_t thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(thread));
    if (add_numbers(path, list)) has_files = true;
  });
  return has_files ? list.count : list_children_by_parent(pids, capacity);
}

bool is_zombie(pid_t child) noexcept {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == child;
}

size_t kill_living_children() noexcept {
  // Static, so that the list takes memory only where there are many children. A child that is not
  // listed now is listed the next time.
  static pid_t children[kMaxChildren];
  const size_t count = list_children(children, kMaxChildren);
  size_t living = 0;
  for (size_t i = 0; i < count; ++i) {
    if (is_zombie(children[i])) continue;
    ++living;
    kill(children[i], SIGKILL);
  }
  return living;
}

size_t list_children_by_parent(pid_t* pids, size_t capacity) noexcept {
  PidList list{pids, capacity, 0};
  const pid_t self = getpid();
  for_each_number("/proc", [&](pid_t pid) {
    if (parent_of(pid) == self) list.add(pid);
  });
  return list.count;
}

}  // namespace pulse::minder
