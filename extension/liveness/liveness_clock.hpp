// The liveness clock: time during which this database was up and swept. A worker's age is measured
// on it, so that an outage, a restart, a promotion or a step of the wall clock makes nobody look
// dead: between two ticks it advances by at most 1.25 sweep intervals.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// One committed reading of the clock table.
struct ClockReading {
  int64 vt_us;
  TimestampTz last_tick;
  int32 timeline;
};

// What a tick stores: the clock without the session's test offset.
int64 live_base_us();

// The same as of another moment, on the wall clock; a moment before the last tick counts as that.
int64 live_base_us_at(TimestampTz at);

// Microseconds of live time now. Reads the clock table under a snapshot of its own.
int64 live_now_us();

// The timeline into which this server writes.
int32 current_timeline();

}  // namespace pulse
