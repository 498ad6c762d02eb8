// The liveness clock counts the time during which this database was up and swept. Sweeps measure
// silence on this clock, so an outage, a restart, a promotion or a step of the wall clock makes no
// worker seem dead. Between two ticks the clock advances by at most 1.25 sweep intervals.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The clock at a moment of the wall clock, without the session's pulse.clock_offset.
int64 live_base_us_at(TimestampTz at);

// The liveness clock now, in microseconds. Reads the clock table under a new snapshot.
int64 live_now_us();

// The timeline into which the server writes.
int32 current_timeline();

}  // namespace pulse
