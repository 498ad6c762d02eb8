// The signals that steer the worker, delivered as calls from the loop.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "base/loop/event_loop.hpp"

namespace pulse {

class Signals {
 public:
  explicit Signals(EventLoop& loop) : loop_(loop) {}
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void on(int number, std::function<void()> callback);

 private:
  struct Watch {
    uv_signal_t handle{};
    std::function<void()> callback;
  };

  EventLoop& loop_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

}  // namespace pulse
