// Sequences whose numbers must never come back. The server logs a sequence 32 numbers ahead, so a
// crash brings a number back only where it loses the record that covers the number.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The next number of a sequence. The commit of this transaction gives the number away.
int64 take_number(Oid sequence);

// Returns the number that a sequence gave last, from its page: no snapshot, no transaction.
int64 last_number(Oid sequence);

// Called before the server records the commit: with synchronous_commit off, flushes the WAL of the
// sequences from which this transaction took numbers. Else a crash could bring a number back. May
// raise.
void flush_numbers();

// Called after the end of the transaction. Cannot fail.
void forget_numbers();

}  // namespace pulse
