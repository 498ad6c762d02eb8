// Claims in progress: owns the area of shared memory with the transactions whose undo lowers
// low-water marks again (low_water_mark.hpp). Other claims skip the jobs that such a transaction
// holds, because the undo wakes a waiter. A claim must not skip a job that any other transaction
// has locked: no wake-up follows when that transaction releases it.
//
// Invariants:
// - The lock of an entry guards all its fields.
// - Only the backend of a transaction writes the transaction's id into an entry.
// - Claims read only entries of transactions in progress, so no claim reads the entry of a
//   transaction that has ended.
// - If two transactions hash to one entry, the later transaction keeps the entry. Each claim then
//   checks the jobs of the earlier transaction itself.
//
// Only a server that preloads the library has this area.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The task bits whose low-water marks the undo of the transaction lowers, and the run_at from which
// claims may skip jobs.
struct ClaimInProgress {
  uint64 bits;
  TimestampTz from;
};

// Size of the area, in bytes.
Size claims_in_progress_size();
void create_claims_in_progress();

// Publishes that the undo of this transaction lowers the low-water marks of this bit to `from` or
// further. Call this function after note_passed(bit, from).
void publish_claim(int bit, TimestampTz from);

// The claim that the transaction, still in progress, has published; no bits: none.
ClaimInProgress claim_of_transaction(TransactionId xid);

// Withdraws the claims of a transaction that is prepared, because its end lowers no
// low-water marks. Never raises.
void withdraw_claims();

}  // namespace pulse
