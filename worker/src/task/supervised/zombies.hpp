// Zombies that no part of the worker waits for. PID 1 of a container gets every process whose
// parent has died, as of a shell of `docker exec`, and has to reap each.
#pragma once

#include <functional>

#include "base/loop/event_loop.hpp"
#include "base/loop/signals.hpp"

namespace pulse {

// During its life, the object reaps each ended child that no handle of the loop waits for, and
// kills none. libuv asks for its children by number, so the object leaves to libuv the ends that
// libuv is to hear of.
class Zombies {
 public:
  // `must_stay`: whether zombies have a use now.
  Zombies(EventLoop& loop, std::function<bool()> must_stay);
  Zombies(const Zombies&) = delete;
  Zombies& operator=(const Zombies&) = delete;

 private:
  void reap();

  EventLoop& loop_;
  const std::function<bool()> must_stay_;
  // At the end of the iteration in which a child has ended: libuv has read the end before.
  Timer ended_;
  Signals signals_;
};

}  // namespace pulse
