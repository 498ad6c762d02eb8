// How many claims of a worker have begun: a worker that held nothing, when none of its claims was
// open, holds nothing while the count is the same. Kept only where the server preloads this
// library, and for several workers together: one too many costs a beat its short cut.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Memory for the counts of all databases.
Size claim_counts_size();
void create_claim_counts();

// Every claim of this worker begins so, before it takes a job: with the worker's lock, to the end
// of the transaction, and counted. Waits only for one who is declaring this very worker lost.
void begin_claim(int64 worker_id);

// The count of this worker. False where none is kept.
bool read_claim_count(int64 worker_id, uint64* count);

// Whether every claim that is in the count has ended; what it took can be seen then. Asked after
// the count was read.
bool claims_have_ended(int64 worker_id);

}  // namespace pulse
