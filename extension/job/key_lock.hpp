// The locks of job keys. Whoever makes a job with a key wait (an add, or the end of an attempt that
// is repeated) holds the key's lock until commit. A transaction with very many keys goes over to
// locks of buckets, so that it cannot use up the server's lock table.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Waits for whoever holds the key.
void lock_key(const text* key);

// Never waits; false when somebody else holds it.
bool try_lock_key(const text* key);

// Locks many keys in one order for everybody, so that two callers never wait in a circle.
void lock_keys(const Datum* keys, int count);

// The transaction, or a savepoint of it, is over: what was held may not be held any more.
void forget_key_locks();

}  // namespace pulse
