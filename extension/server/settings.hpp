// The values of the settings pulse.*. Durations are in milliseconds or seconds, as the suffix says;
// -1 means off or for ever.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Settings {
  int heartbeat_interval_ms;
  int sweep_interval_ms;  // -1: sweeps by hand only
  int sweep_threshold_ms;
  int sweep_jobs;
  int disconnect_grace_ms;  // -1: the server ignores the end of a session
  int max_crashes;          // -1: never quarantine
  int default_timeout_ms;   // -1: no timeout
  int poll_interval_ms;
  int keep_completed_s;  // 0: delete at once, -1: for ever
  int keep_failed_s;
  int keep_attempts_s;
  int keep_idempotency_keys_s;
  bool claims;
  bool events;
  bool host_check;
  bool allow_drop;
  bool enable_counters;
  double clock_offset_s;
  double frozen_live_us;  // -1: time runs
  char* databases;
  char* traceparent;  // "": the jobs that this session adds belong to no trace
};

extern Settings settings;

// Defines the settings; called once, from _PG_init. `show_background_sweeps` computes the value of
// pulse.background_sweeps.
void define_settings(GucShowHook show_background_sweeps);

// The longest step of the liveness clock between two ticks, in microseconds: 1.25 sweep intervals.
// If sweeps are switched off, the default interval applies, so that manual sweeps still see time
// pass.
int64 longest_tick_us();

}  // namespace pulse
