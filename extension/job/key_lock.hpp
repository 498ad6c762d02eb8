// The locks of job keys. A transaction that makes a job with a key ready or parked holds the key's
// lock until it ends: a producer that adds the job, or the end of an attempt that is to be retried.
// A transaction with very many keys locks buckets instead, which spares the server's lock table.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Waits for a transaction that holds the key.
void lock_key(const text* key);

// Never waits; false when another transaction holds the key.
bool try_lock_key(const text* key);

// Whether a waiting job has the key, as the snapshot shows: the latest for the holder of its lock.
bool is_key_taken(const text* key, Snapshot (*take_snapshot)());

// Called when the transaction ends. An undone savepoint releases some locks; as the rest stays, the
// count stays too.
void forget_key_locks();

}  // namespace pulse
