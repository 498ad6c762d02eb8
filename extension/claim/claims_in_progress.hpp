// Publishes transactions whose claims lower the marks again if they are undone
// (low_water_mark.hpp). Other claims skip the jobs that such a transaction holds. They must not
// skip jobs locked by any other transaction, because no wake-up follows when it releases them.
//
// The entry of a transaction that has ended is never read: only holders in progress are looked up.
//
// Only a server that preloads the library has this area. If two transactions hash to one slot, the
// later one keeps it. Jobs of the other are then checked by each claim.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The task bits whose marks the transaction lowers if undone, and the run_at from which jobs may be
// skipped.
struct ClaimInProgress {
  uint64 bits;
  TimestampTz from;
};

Size claims_in_progress_size();
void create_claims_in_progress();

// Publishes that this transaction, if undone, lowers the marks of this bit to `from` or further.
// Call it after note_passed(bit, from).
void publish_claim(int bit, TimestampTz from);

// What the transaction, still in progress, has published.
ClaimInProgress claim_of_transaction(TransactionId xid);

// Withdraws the claims of a transaction that is prepared: its end lowers no marks. Never raises.
void withdraw_claims();

}  // namespace pulse
