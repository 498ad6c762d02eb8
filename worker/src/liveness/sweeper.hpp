// Sweep: finds lost workers and recovers their jobs, on the sweep interval, unless the server's
// background worker does, and at once when told.
//
// A sweep travels on the connection of the finisher. There a sweep may delay completions by the
// milliseconds that it takes, which is harmless. On the connection of the heartbeat a slow sweep
// would make this worker seem dead.
#pragma once

#include <functional>

#include "base/postgres/reconnect.hpp"
#include "base/postgres/repeats.hpp"
#include "base/postgres/session.hpp"
#include "liveness/registration.hpp"

namespace pulse {

class Sweeper {
 public:
  Sweeper(Session& session, Timers& timers, Random random, Log& log);

  // Sweeps from now on, on the interval of the registration; never where sweeping is off.
  void start(const Registration& registration);
  void stop();
  // The server says that recovery is due.
  void sweep_now();
  // While the server's background worker sweeps on the interval, this sweeper sweeps only when
  // told.
  void leave_interval_to_others(bool is_left) { is_left_ = is_left; }

  // When the next sweep on the interval is due; nothing where none is.
  std::optional<TimePoint> next_sweep() const;

  // A sweep has found workers lost.
  std::function<void()> on_workers_lost;

 private:
  bool send_next();
  void take_report(const Reply& reply);
  void schedule();
  void end_interval();

  Session& session_;
  Timers& timers_;
  Repeats failures_;
  Random random_;
  Log& log_;
  std::optional<Duration> interval_;
  bool is_wanted_ = false;
  bool is_left_ = false;
  Timer next_sweep_;
};

}  // namespace pulse
