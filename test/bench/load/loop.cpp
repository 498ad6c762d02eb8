#include "loop.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace bench {
namespace {

constexpr int kEventsAtOnce = 256;

void check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// epoll counts milliseconds, which is too coarse for a schedule of jobs; a timer's descriptor
// counts nanoseconds.
Loop::Loop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      alarm_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  check(epoll_, "epoll_create1");
  check(alarm_, "timerfd_create");
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  check(epoll_ctl(epoll_, EPOLL_CTL_ADD, alarm_, &event), "epoll_ctl");
}

Loop::~Loop() {
  close(alarm_);
  close(epoll_);
}

void Loop::watch(int socket, Listener* listener) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = listener}};
  check(epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event), "epoll_ctl");
}

void Loop::want_writable(int socket, Listener* listener, bool wanted) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = listener}};
  if (wanted) event.events |= EPOLLOUT;
  check(epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event), "epoll_ctl");
}

void Loop::at(Moment moment, std::function<void()> task) {
  timers_.push({moment, timers_made_++, std::move(task)});
}

void Loop::run() {
  is_stopped_ = false;
  std::array<epoll_event, kEventsAtOnce> events;
  while (!is_stopped_) {
    run_due_timers();
    if (is_stopped_) return;
    set_alarm();
    int count = epoll_wait(epoll_, events.data(), kEventsAtOnce, -1);
    if (count < 0 && errno != EINTR) check(count, "epoll_wait");
    for (int i = 0; i < count; i++) {
      auto* listener = static_cast<Listener*>(events[i].data.ptr);
      if (listener) listener->on_ready();
    }
  }
}

void Loop::run_due_timers() {
  while (!is_stopped_ && !timers_.empty() && timers_.top().moment <= Clock::now()) {
    auto task = std::move(const_cast<Timer&>(timers_.top()).task);
    timers_.pop();
    task();
  }
}

// An alarm that rang is silenced by setting the next one.
void Loop::set_alarm() {
  Moment next = timers_.empty() ? Moment::max() : timers_.top().moment;
  if (next == alarm_at_ && next > Clock::now()) return;
  alarm_at_ = next;
  itimerspec when{};
  if (next != Moment::max()) {
    auto since_epoch = next.time_since_epoch();
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = std::chrono::nanoseconds(since_epoch - seconds).count();
  }
  check(timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &when, nullptr), "timerfd_settime");
}

}  // namespace bench
