#include "base/loop/stop_requests.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/loop/must_succeed.hpp"

namespace pulse {
namespace {

constexpr std::uint64_t kMaxAtOnce = 2;

}  // namespace

StopRequests::StopRequests() : counter_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!counter_.valid()) must_succeed(-errno, "eventfd");
}

void StopRequests::add() noexcept {
  const std::uint64_t one = 1;
  (void)!write(counter_.get(), &one, sizeof one);
}

LoopHandle<uv_poll_t> StopRequests::listen(EventLoop& loop, const std::function<void()>& callback) {
  callback_ = &callback;
  auto handle = std::make_unique<uv_poll_t>();
  must_succeed(uv_poll_init(loop.uv(), handle.get(), counter_.get()), "uv_poll_init");
  auto owned = own_handle(std::move(handle));
  owned->data = this;
  must_succeed(uv_poll_start(owned.get(), UV_READABLE,
                             [](uv_poll_t* poll, int, int) {
                               static_cast<StopRequests*>(poll->data)->take();
                             }),
               "uv_poll_start");
  return owned;
}

void StopRequests::take() {
  std::uint64_t count = 0;
  if (read(counter_.get(), &count, sizeof count) != sizeof count) return;
  for (std::uint64_t i = 0; i < std::min(count, kMaxAtOnce); ++i) (*callback_)();
}

}  // namespace pulse
