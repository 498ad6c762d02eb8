// Zombies that are nobody's: PID 1 of a container gets every process whose parent has died, as of a
// shell of `docker exec`, and has to reap it once it ends.
#pragma once

#include <functional>

#include "loop/event_loop.hpp"
#include "loop/signals.hpp"

namespace pulse {

// While it lives, reaps each ended child that no handle of the loop waits for, and kills none.
// libuv asks for its children by number: an end that it is to hear of is only looked at here.
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
  Timer ended_;  // at the end of the turn in which a child has ended: libuv has had its turn
  Signals signals_;
};

}  // namespace pulse
