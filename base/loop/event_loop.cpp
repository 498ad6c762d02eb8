#include "base/loop/event_loop.hpp"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/loop/must_succeed.hpp"
#include "base/loop/unique_fd.hpp"

namespace pulse {
namespace {

// libuv aborts the process where a loop that begins gets no descriptor for its signals.
void must_have_descriptors() {
  constexpr std::size_t kOfLoop = 6;
  std::array<UniqueFd, kOfLoop> taken;
  for (UniqueFd& fd : taken) {
    fd.reset(eventfd(0, EFD_CLOEXEC));
    if (!fd.valid()) must_succeed(-errno, "eventfd");
  }
}

}  // namespace

EventLoop::EventLoop(const Clock& clock) : timers_(clock) {
  must_have_descriptors();
  must_succeed(uv_loop_init(&loop_), "uv_loop_init");
  timer_descriptor_ = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_descriptor_ < 0) must_succeed(-errno, "timerfd_create");
  must_succeed(uv_poll_init(&loop_, &timer_ready_, timer_descriptor_), "uv_poll_init");
  // The timer's only work is to end the poll.
  must_succeed(uv_poll_start(&timer_ready_, UV_READABLE,
                             [](uv_poll_t* poll, int, int) {
                               const auto* self = static_cast<EventLoop*>(poll->data);
                               std::uint64_t expirations = 0;
                               (void)!read(self->timer_descriptor_, &expirations,
                                           sizeof expirations);
                             }),
               "uv_poll_start");
  must_succeed(uv_prepare_init(&loop_, &before_poll_), "uv_prepare_init");
  must_succeed(uv_prepare_start(&before_poll_,
                                [](uv_prepare_t* handle) {
                                  static_cast<EventLoop*>(handle->data)->arm_timer();
                                }),
               "uv_prepare_start");
  must_succeed(uv_check_init(&loop_, &after_poll_), "uv_check_init");
  must_succeed(uv_check_start(&after_poll_,
                              [](uv_check_t* handle) {
                                static_cast<EventLoop*>(handle->data)->end_iteration();
                              }),
               "uv_check_start");
  must_succeed(uv_async_init(
                   &loop_, &posted_ready_,
                   [](uv_async_t* handle) { static_cast<EventLoop*>(handle->data)->run_posted(); }),
               "uv_async_init");
  timer_ready_.data = this;
  before_poll_.data = this;
  after_poll_.data = this;
  posted_ready_.data = this;
}

EventLoop::~EventLoop() {
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_ready_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&before_poll_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&after_poll_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&posted_ready_), nullptr);
  uv_run(&loop_, UV_RUN_DEFAULT);  // until every handle is closed
  uv_loop_close(&loop_);
  close(timer_descriptor_);
}

void EventLoop::post(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(callback));
  }
  uv_async_send(&posted_ready_);
}

void EventLoop::run() { uv_run(&loop_, UV_RUN_DEFAULT); }

void EventLoop::stop() { uv_stop(&loop_); }

void EventLoop::run_posted() {
  std::vector<std::function<void()>> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& callback : posted) callback();
}

void EventLoop::end_iteration() {
  timers_.run_due();
  if (on_iteration) on_iteration();
}

void EventLoop::arm_timer() {
  const auto next = timers_.next_due();
  itimerspec setting{};
  if (next) {
    using std::chrono::duration_cast;
    const auto due = next->time_since_epoch();
    const auto seconds = duration_cast<std::chrono::seconds>(due);
    setting.it_value.tv_sec = seconds.count();
    setting.it_value.tv_nsec = duration_cast<std::chrono::nanoseconds>(due - seconds).count();
    // A time in the past fires at once; an all-zero one would disarm.
  }
  timerfd_settime(timer_descriptor_, TFD_TIMER_ABSTIME, &setting, nullptr);
}

}  // namespace pulse
