// Advisory locks of this extension, in a lock class that no SQL function can name. A lock lasts
// until the transaction ends or gives the lock back. Only the session lock of an attached worker
// lasts longer: until its session ends or releases all locks (pg_advisory_unlock_all, DISCARD ALL).
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The fourth field of the lock tag; SQL's advisory locks use 1 and 2.
enum class LockKind : uint16 {
  kWorker = 0x5001,
  kQueue,
  kKey,
  kAttachment = 0x5005,
  kLevel,
  kFirstLook,
  kCounters,
  kRing,
  kLeap,
};

// Takes the lock, and waits where another transaction holds a conflicting lock.
void advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Takes the lock without waiting; false when another transaction holds a conflicting lock.
bool try_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Gives back a lock that try_advisory_lock() took.
void release_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Sleeps a millisecond, for a session that polls for the end of another session's short work.
// Checks interrupts.
void pause_briefly();

// Waits until each transaction of another session that holds the lock now has ended. False when no
// such transaction exists, or at `limit` on the monotonic clock.
bool outwait_holders(LockKind kind, uint64 key, int64 limit);

// The lock of a queue, or of one of the queue's levels, that another transaction holds.
struct QueueLock {
  int length;  // of the level's name, a beginning of the queue's name; 0: no lock is held
  VirtualTransactionId holder;  // a transaction that holds the lock
};

// Finds the lock without taking a lock, because a promotion could meet such a lock.
QueueLock find_queue_lock(const text* name);

inline bool is_queue_locked(const text* name) { return find_queue_lock(name).length > 0; }

// True while an operator's transaction changes settings of the level.
bool is_being_set(uint64 level);

// True when this session holds the lock exclusively.
bool holds_advisory_lock(LockKind kind, uint64 key);

// The session-level lock that represents an attached worker.
void hold_attachment(uint64 attachment);

// True when this session holds the lock of the attachment.
bool holds_attachment(uint64 attachment);

// True when no session holds the lock; the check keeps nothing.
bool attachment_is_free(uint64 attachment);

// An advisory lock of this extension or of SQL, held by this session or its transaction.
struct HeldLock {
  LOCKTAG tag;
  LOCKMASK modes;
};

// A list of HeldLock, in the present memory context.
List* held_advisory_locks();

}  // namespace pulse
