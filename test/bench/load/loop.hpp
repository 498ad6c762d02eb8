// The event loop of bench-load: sockets, and moments at which something is to be done. One thread,
// so that a load of thousands of sessions costs one process little.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;

double milliseconds(Clock::duration duration);

class Loop {
 public:
  // Told of what happens on its socket.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_ready() = 0;
  };

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void watch(int socket, Listener* listener);
  // Whether the listener is told also when the socket takes more bytes.
  void want_writable(int socket, Listener* listener, bool wanted);
  void at(Moment moment, std::function<void()> task);

  // Runs until something it called asks it to stop.
  void run();
  void stop() { is_stopped_ = true; }

 private:
  struct Timer {
    Moment moment;
    std::uint64_t number;  // of equal moments the one that was asked for first
    std::function<void()> task;
    bool operator<(const Timer& other) const {
      return moment != other.moment ? moment > other.moment : number > other.number;
    }
  };
  void run_due_timers();
  void set_alarm();

  int epoll_;
  int alarm_;
  bool is_stopped_ = false;
  std::uint64_t timers_made_ = 0;
  Moment alarm_at_{};
  std::priority_queue<Timer> timers_;
};

}  // namespace bench
