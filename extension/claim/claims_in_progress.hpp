// Claims under way that lower the marks again should they be undone (low_water_mark.hpp). Other
// claims may go past the jobs that such a one holds, as if they were claimed already; past what
// anybody else holds they may not, because nobody would tell them that it is free again.
//
// Only where the server preloads this library. A place that two transactions would share belongs to
// the later one: what the other holds is then stepped over each time, as without an claims in
// progress.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The bits of whose marks it promises so, and from where on.
struct ClaimInProgress {
  uint64 bits;
  TimestampTz from;
};

Size claims_in_progress_size();
void create_claims_in_progress();

// This transaction lowers the marks of this bit to `from`, or further, if it is undone. Call it
// after note_passed(bit, from).
void publish_claim(int bit, TimestampTz from);

// What the transaction, which is still in progress, has published.
ClaimInProgress claim_of_transaction(TransactionId xid);

// At the end of the transaction, before marks are lowered. Never raises.
void withdraw_claims();

}  // namespace pulse
