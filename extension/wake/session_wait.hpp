// Waiting: the common steps of the procedures that wait. Each procedure sleeps without a snapshot
// and without a transaction id.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Raises PU006 unless the procedure may end the transaction of the call.
void require_no_transaction_block(FunctionCallInfo fcinfo, const char* procedure);

// max_wait in microseconds. Raises PU004 unless max_wait is between 0 and 1 day.
int64 checked_max_wait_us(const Interval* max_wait);

// The setting pulse.poll_interval, in microseconds.
int64 poll_interval_us();

// Commits, so that the wait holds neither a snapshot nor a transaction id.
void drop_snapshot();

// Sleeps until the latch is set, the time has passed or the client has disconnected. So a dead
// client frees its connection at once, whatever the value of client_connection_check_interval. May
// raise, because the function checks interrupts.
void sleep_for(int64 wait_us);

}  // namespace pulse
