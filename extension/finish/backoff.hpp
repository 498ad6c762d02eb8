// Whether and when a job runs again after an attempt: what its task says of that.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct RetryRule {
  enum Kind { kExponential, kFixed, kNone };
  Kind kind;
  bool has_base;
  double base_s;
  bool has_cap;
  double cap_s;
  double jitter;    // the fraction of the delay by which it varies
  int max_crashes;  // -1: never quarantined
};

// Reads it under the snapshot; a task without a row has the defaults.
RetryRule retry_rule(Datum identifier, Snapshot snapshot);

// How long a job waits after its n-th attempt, in microseconds: exp(least(10, n)) seconds unless
// the task says otherwise. With jitter it differs from call to call.
int64 backoff_us(const RetryRule& rule, int attempts);

}  // namespace pulse
