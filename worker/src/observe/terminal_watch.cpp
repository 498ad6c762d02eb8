#include "observe/terminal_watch.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/loop/must_succeed.hpp"

namespace pulse {

TerminalWatch::TerminalWatch(EventLoop& loop, int terminal, std::function<void()> on_closed)
    : on_closed_(std::move(on_closed)), events_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_.valid()) must_succeed(-errno, "epoll_create1");
  // A hang-up may come as the news that there is something to read. Edges: no code reads here.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, terminal, &event) != 0) {
    must_succeed(-errno, "epoll_ctl");
  }
  auto ready = std::make_unique<uv_poll_t>();
  must_succeed(uv_poll_init(loop.uv(), ready.get(), events_.get()), "uv_poll_init");
  ready_ = own_handle(std::move(ready));
  ready_->data = this;
  must_succeed(uv_poll_start(ready_.get(), UV_READABLE,
                             [](uv_poll_t* poll, int, int) {
                               static_cast<TerminalWatch*>(poll->data)->check();
                             }),
               "uv_poll_start");
}

void TerminalWatch::check() {
  epoll_event event{};
  if (epoll_wait(events_.get(), &event, 1, 0) != 1) return;
  if ((event.events & (EPOLLHUP | EPOLLERR)) == 0) return;
  uv_poll_stop(ready_.get());
  on_closed_();
}

}  // namespace pulse
