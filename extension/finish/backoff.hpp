// What a task says of the ends of its jobs: whether and when one runs again after an attempt, and
// whether a completed one is kept.
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

// Reads it under the snapshot; a task without a row has the defaults.
TaskRule task_rule(Datum identifier, Snapshot snapshot);

// False where no task and no setting asks to keep a completed job.
bool some_task_keeps_completed(Snapshot snapshot);

// How long a job waits after its n-th attempt, in microseconds: exp(least(10, n)) seconds unless
// the task says otherwise. With jitter it differs from call to call.
int64 backoff_us(const TaskRule& rule, int attempts);

}  // namespace pulse
