// The wall clock, which tests may shift, and the monotonic clock.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// pulse.clock_offset in microseconds.
int64 clock_offset_us();

// Whether pulse.frozen_clock stops both clocks of this session.
bool clock_is_frozen();

// The wall clock as the whole extension reads the time: shifted by pulse.clock_offset, or while
// frozen the start of the transaction.
TimestampTz wall_now();

// The transaction's start on the same clock; a new job without a run_at is due at this time.
TimestampTz transaction_now();

// The clock for intervals and timeouts, in microseconds; setting the wall clock does not change
// this clock.
int64 monotonic_us();

// The processor time that this process has used, in microseconds.
int64 processor_us();

}  // namespace pulse
