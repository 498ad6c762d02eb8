// Fences: a transaction that fenced a claim commits only while that claim is current, and holds the
// job's row from the check to its commit, so that no recovery slips between.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Checks every fence of this transaction under a latest snapshot; raises PU001 for a lost claim.
// Runs before commit and before PREPARE TRANSACTION.
void check_fences();

// Forgets them: the transaction is over. Cannot raise.
void forget_fences();

// A savepoint was rolled back: its fences go with it; a claim found lost stays fatal.
void drop_fences(SubTransactionId savepoint);

// A savepoint was released: its fences are its parent's.
void hand_up_fences(SubTransactionId savepoint, SubTransactionId parent);

}  // namespace pulse
