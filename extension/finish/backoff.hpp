// The settings of a task for the ends of its jobs: whether and when a job runs again after an
// attempt, and whether a completed job is kept.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct TaskRule {
  enum Kind { kExponential, kFixed, kNone };
  Kind kind;
  bool has_base;
  double base_s;
  bool has_cap;
  double cap_s;
  double jitter;    // the fraction of the delay by which it varies
  int max_crashes;  // -1: never quarantined
  bool keeps_completed;
};

// Reads the settings under the snapshot; a task without a row has the defaults.
TaskRule task_rule(Datum identifier, Snapshot snapshot);

// False when no task and no setting keeps completed jobs.
bool some_task_keeps_completed(Snapshot snapshot);

// The delay of a job after its n-th attempt, in microseconds: exp(least(10, n)) seconds unless the
// task sets another. With jitter it differs from call to call.
int64 backoff_us(const TaskRule& rule, int attempts);

}  // namespace pulse
