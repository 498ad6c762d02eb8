// Task limits: the limits of tasks whose jobs are held. The worker asks anew when tasks have
// changed: a raised or lowered timeout counts for running jobs, as in a sweep.
#pragma once

#include <functional>

#include "base/postgres/repeats.hpp"
#include "base/postgres/session.hpp"
#include "jobs/held_jobs.hpp"
#include "liveness/heartbeat.hpp"

namespace pulse {

class TaskLimits {
 public:
  TaskLimits(Session& session, const Heartbeat& heartbeat, HeldJobs& held, Timers& timers,
             Log& log);

  // Tasks have changed.
  void refresh();

  // Jobs have other limits, perhaps.
  std::function<void()> on_changed;

 private:
  bool send_next();
  void take(const Reply& reply);
  // Gives the limits to each job of the task that has not ended.
  void give(const QueryResult::Row& limits);

  Session& session_;
  const Heartbeat& heartbeat_;
  HeldJobs& held_;
  Timers& timers_;
  Repeats failures_;
  Log& log_;
  bool is_wanted_ = false;
};

}  // namespace pulse
