// Numbers that are never used twice, also across failover, restore and pg_upgrade. They are the
// installation's epoch_base and the timeline, above 40 bits of a sequence.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The token of one claim call. Tokens of one job grow.
int64 next_token();

// Called before the server records the commit: with synchronous_commit off, flushes the WAL of the
// sequences that this transaction advanced. Else a crash could bring a number back. May raise.
void flush_numbers();

// Called after the end of the transaction. Cannot fail.
void forget_numbers();

}  // namespace pulse
