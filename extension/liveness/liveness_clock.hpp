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

// What sessions share of it.
struct RecalledClock {
  slock_t lock;
  Oid clock;  // of which installation; 0: nothing
  ClockReading reading;
  int64 skew_us;  // of the wall clock to the monotonic one then
};

void forget_clock(RecalledClock* shared);

// What a tick stores: the clock without the session's test offset.
int64 live_base_us();

// The same as of another moment, on the wall clock; a moment before the last tick counts as that.
int64 live_base_us_at(TimestampTz at);

// Microseconds of live time now. Reads the clock table under a snapshot of its own.
int64 live_now_us();

// The same, from what any session of this database has read before, as long as the table is sure to
// say the same: ticks add to the clock what passes anyway, unless they stay out for longer than
// they may or the wall clock is set.
int64 recall_live_now_us();

// The timeline into which this server writes.
int32 current_timeline();

}  // namespace pulse
