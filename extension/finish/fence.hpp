// Fences: a transaction that fenced a claim commits only while the claim is current. The
// transaction locks the job's row from the check to the commit, so that no sweep recovers the job
// in between. Owns the list of fences in the memory of the session.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Checks every fence of this transaction under the latest snapshot. Raises PU001 for a lost claim.
// Runs before commit and before PREPARE TRANSACTION.
void check_fences();

// Forgets all fences when the transaction ends. Cannot raise.
void forget_fences();

// Drops the fences of a rolled-back savepoint. A claim found lost still fails the transaction.
void drop_fences(SubTransactionId savepoint);

// Moves the fences of a released savepoint to the parent.
void hand_up_fences(SubTransactionId savepoint, SubTransactionId parent);

}  // namespace pulse
