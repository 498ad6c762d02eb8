// Job keys: no two waiting jobs have the same key, and a running job whose key was taken from it
// does not run again.
//
// Invariants:
// - The unique index of waiting keys is the only lock that lasts until commit. A transaction that
//   finds an uncommitted change under a key waits for the id of the other transaction. So keys need
//   no memory, and transactions with different keys never meet.
// - The lock of a key is held while one call reads the key and writes under it. The holder waits
//   for no other transaction, except where a trigger of others waits. So no circle can close.
// - The end of an attempt tries the lock. Where it is taken, or another transaction in progress
//   changes what waits under the key, the key is undecided: the job is parked in a lane of its own,
//   outside of the unique index, until a sweep finds the key decided.
// - Nothing is written into the row of a running job: a row of pulse.superseded_job says that its
//   key was taken. It outlives the job that took the key, and goes with the end of the running one.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

enum class KeyStanding {
  kFree,      // the caller has its lock, if there is a key, and gives it back with unlock_key_of()
  kTaken,     // the job does not run again
  kUndecided  // by a transaction in progress
};

// Whether a running job may wait again under its key. Never waits.
KeyStanding try_lock_key_of(TupleTableSlot* job);
void unlock_key_of(TupleTableSlot* job);

// Called when a job with a key has ended for good: removes what says that its key was taken, and
// returns whether the key was.
bool forget_superseded(TupleTableSlot* job);

// The lock of a key until the transaction ends, as the functions of 0.1.0 hold it. False when
// another transaction has it.
bool lock_key_for_0_1_0(const text* key, bool waits);

}  // namespace pulse
