// The clocks of this extension: the wall clock as tests may move it, and the monotonic one.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// pulse.clock_offset in microseconds.
int64 clock_offset_us();

// Wall clock as everything in this extension sees it: moved by pulse.clock_offset.
TimestampTz wall_now();

// The start of the transaction on the same clock: what a job added now is due at.
TimestampTz transaction_now();

// The clock for intervals and limits of waits: no change of the wall clock moves it.
int64 monotonic_us();

}  // namespace pulse
