#include "server/clocks.hpp"

#include "server/settings.hpp"

#include <cmath>
#include <ctime>

namespace pulse {

int64 clock_offset_us() {
  return static_cast<int64>(std::rint(settings.clock_offset_s * USECS_PER_SEC));
}

bool clock_is_frozen() { return settings.frozen_live_us >= 0; }

TimestampTz wall_now() {
  return clock_is_frozen() ? transaction_now() : GetCurrentTimestamp() + clock_offset_us();
}

int64 monotonic_us() {
  instr_time now;
  INSTR_TIME_SET_CURRENT(now);
  return static_cast<int64>(INSTR_TIME_GET_MICROSEC(now));
}

int64 processor_us() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * USECS_PER_SEC + used.tv_nsec / 1000;
}

TimestampTz transaction_now() { return GetCurrentTransactionStartTimestamp() + clock_offset_us(); }

}  // namespace pulse

PULSE_FUNCTION(pulse_clock_timestamp) { PG_RETURN_TIMESTAMPTZ(pulse::wall_now()); }

PULSE_FUNCTION(pulse_transaction_timestamp) { PG_RETURN_TIMESTAMPTZ(pulse::transaction_now()); }
