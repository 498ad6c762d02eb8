// The wall clock, which tests may shift, and the monotonic clock.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// pulse.clock_offset in microseconds.
int64 clock_offset_us();

// The wall clock as the whole extension reads it, shifted by pulse.clock_offset.
TimestampTz wall_now();

// The transaction's start on the same clock; a new job without a run_at is due then.
TimestampTz transaction_now();

// The clock for intervals and timeouts, in microseconds; setting the wall clock does not change it.
int64 monotonic_us();

}  // namespace pulse
