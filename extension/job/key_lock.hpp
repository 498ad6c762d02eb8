// Job keys: no two waiting jobs have the same key, and a running job that has lost its key does not
// run again.
//
// Invariants:
// - The unique index of waiting keys is the only lock that lasts until commit. A transaction that
//   finds an uncommitted change under a key waits for the id of the other transaction. So keys need
//   no memory, and transactions with different keys never meet.
// - The lock of a key is held while one call reads the key and writes under it. The holder waits
//   for no other transaction, except where a trigger of others waits. So no circle can close.
// - The end of an attempt tries the lock. Where another session has the lock, or another
//   transaction in progress changes a waiting job under the key, the key is undecided: the ended
//   job is parked in a lane of its own, outside of the unique index, until a sweep finds the key
//   decided.
// - Another session writes nothing into the row of a running job: a row of pulse.superseded_job
//   says that the running job has lost its key. The row outlives the job that took the key, and
//   goes with the end of the running job.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

enum class KeyStanding {
  kFree,      // the caller has the key's lock, if the job has a key, and releases the lock with
              // unlock_key_of()
  kTaken,     // the job does not run again
  kUndecided  // a transaction in progress decides
};

// Whether a running job may wait again under the job's key. Never waits.
KeyStanding try_lock_key_of(TupleTableSlot* job);
void unlock_key_of(TupleTableSlot* job);

// Called when a job with a key has ended for good: removes the row which says that the job has lost
// its key, and returns whether there was a row.
bool forget_superseded(TupleTableSlot* job);

// Takes the lock of a key until the transaction ends, as the functions of 0.1.0 do. False when
// another transaction has the lock.
bool lock_key_for_0_1_0(const text* key, bool waits);

}  // namespace pulse
