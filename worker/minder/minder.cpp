#include "minder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <errno.h>

#include "children.hpp"

namespace pulse::minder {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

// The earlier of two moments, of which 0 is none.
int64_t earlier(int64_t one, int64_t other) noexcept {
  if (one == 0 || other == 0) return one + other;
  return one < other ? one : other;
}

// Poll wakes for either descriptor; the number of events is of no interest.
template <typename Event>
void discard(int fd) noexcept {
  Event event;
  while (read(fd, &event, sizeof event) == sizeof event) {
  }
}

}  // namespace

bool Minder::run() noexcept {
  if (!open_watches() || !start_task()) return false;
  while (!has_ended_) iterate();
  kill_leftovers();
  return true;
}

bool Minder::open_watches() noexcept {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  child_fd_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  timer_fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (child_fd_ >= 0 && timer_fd_ >= 0) return true;
  report(Report::kNotStarted, errno, Report::kPrepare);
  return false;
}

// A worker that was stopped during the start of this minder may have lost the job meanwhile.
bool Minder::is_too_late() noexcept {
  read_orders();
  check_time();
  return is_terminating_;
}

bool Minder::start_task() noexcept {
  if (is_too_late()) {
    report(Report::kNotStarted, ETIME, Report::kTooLate);
    has_ended_ = true;
    return true;
  }
  int start[2];
  if (pipe2(start, O_CLOEXEC | O_NONBLOCK) != 0) {
    report(Report::kNotStarted, errno, Report::kPrepare);
    return false;
  }
  const pid_t self = getpid();
  task_ = fork();
  if (task_ == 0) become_task(self, command_, environment_, rules_, deadline_, start[1]);
  if (task_ < 0) {
    report(Report::kNotStarted, errno, Report::kFork);
    return false;
  }
  close(start[1]);
  start_fd_ = start[0];
  // The task's descriptors must close when the task closes its own. The directory stays open: the
  // task finds the executable through it.
  constexpr int kOfTask[] = {kStdinFd, kStdoutFd, kStderrFd, kPulseFd, kFileFd, kWorkDirectoryFd};
  for (const int fd : kOfTask) close(fd);
  return true;
}

void Minder::iterate() noexcept {
  arm_timer();
  // Poll passes over negative descriptors.
  pollfd watched[] = {{is_line_open_ ? kLineFd : -1, POLLIN, 0},
                      {start_fd_, POLLIN, 0},
                      {child_fd_, POLLIN, 0},
                      {timer_fd_, POLLIN, 0}};
  if (poll(watched, sizeof watched / sizeof watched[0], -1) < 0) return;
  discard<signalfd_siginfo>(child_fd_);
  discard<uint64_t>(timer_fd_);
  // Orders before the clock: a ping that waits on the line may have moved the deadline. The start
  // before the end: a task that could not be started has ended too.
  read_orders();
  read_start();
  reap();
  check_time();
}

void Minder::read_orders() noexcept {
  while (is_line_open_) {
    Order order{};
    const ssize_t size = recv(kLineFd, &order, sizeof order, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size != sizeof order) {
      is_line_open_ = false;
      terminate(Report::kSilence, boot_now() + silence_grace_ns_);
    } else if (order.kind == Order::kPing) {
      deadline_ = order.at;
    } else if (order.kind == Order::kTerminate) {
      terminate(Report::kWorker, order.at);
    }
  }
}

void Minder::read_start() noexcept {
  if (start_fd_ < 0) return;
  StartFailure failure{};
  const ssize_t size = read(start_fd_, &failure, sizeof failure);
  if (size < 0) return;
  close(start_fd_);
  start_fd_ = -1;
  if (size == 0) {
    report(Report::kStarted, task_, 0);
    return;
  }
  report(Report::kNotStarted, failure.error, failure.stage);
  has_ended_ = true;
}

void Minder::reap() noexcept {
  while (!has_ended_) {
    // Ask before reaping: while the task is a zombie, the task's number cannot name another group.
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (ended.si_pid != task_) {
      waitpid(ended.si_pid, nullptr, WNOHANG);
      continue;
    }
    has_ended_ = true;
    const bool has_exited = ended.si_code == CLD_EXITED;
    report(has_exited ? Report::kExited : Report::kSignalled, ended.si_status, stopped_by_);
  }
}

void Minder::check_time() noexcept {
  const int64_t now = boot_now();
  if (deadline_ != 0 && now >= deadline_) {
    deadline_ = 0;
    terminate(Report::kSilence, now + silence_grace_ns_);  // also within the grace of another end
  }
  if (is_terminating_ && kill_at_ != 0 && now >= kill_at_) {
    kill_at_ = 0;
    signal_group(SIGKILL);
  }
}

void Minder::arm_timer() noexcept {
  const int64_t next = earlier(kill_at_, deadline_);
  itimerspec due{};  // all zero disarms
  due.it_value.tv_sec = next / kNanosecondsPerSecond;
  due.it_value.tv_nsec = next % kNanosecondsPerSecond;
  timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &due, nullptr);
}

void Minder::terminate(Report::StoppedBy cause, int64_t kill_at) noexcept {
  if (is_terminating_) {
    if (kill_at_ != 0 && kill_at < kill_at_) kill_at_ = kill_at;
    return;
  }
  is_terminating_ = true;
  stopped_by_ = cause;
  kill_at_ = kill_at;
  signal_group(SIGTERM);
  signal_group(SIGCONT);  // a stopped task takes no SIGTERM
}

void Minder::signal_group(int number) const noexcept {
  if (task_ <= 0) return;
  // There is no group yet while the child has not come to setsid().
  if (kill(-task_, number) != 0 && errno == ESRCH) kill(task_, number);
}

void Minder::report(Report::Kind kind, int value, int detail) noexcept {
  const Report message{kind, value, detail};
  // A worker that is gone hears nothing, and a worker that is stopped finds the report when it goes
  // on.
  send(kLineFd, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Minder::kill_leftovers() noexcept {
  signal_group(SIGKILL);
  constexpr int kFirstWaitMs = 10;
  constexpr int kMaxWaitMs = 1000;
  for (int wait_ms = kFirstWaitMs;; wait_ms = wait_ms * 2 < kMaxWaitMs ? wait_ms * 2 : kMaxWaitMs) {
    // A process that left the group was adopted when its parent died; killing the process brings
    // its children here. Zombies stay while a process of the task is alive: under a limit on
    // processes, zombies take the places in which a fork bomb would go on.
    if (kill_living_children() == 0) {
      pid_t reaped = 0;
      while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (reaped < 0 && errno == ECHILD) return;
    }
    pollfd child_ended{child_fd_, POLLIN, 0};
    poll(&child_ended, 1, wait_ms);
    discard<signalfd_siginfo>(child_fd_);
  }
}

}  // namespace pulse::minder
