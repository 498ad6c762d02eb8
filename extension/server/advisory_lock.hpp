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
  kQueueCheck,
  kCounters,
  kRing,
  kLeap,
  kBacklog,
};

// Takes the lock, and waits where another transaction holds a conflicting lock.
void advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Takes the lock without waiting; false when another transaction holds a conflicting lock.
bool try_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Gives back a lock that this transaction has taken in this mode.
void release_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Sleeps a millisecond, for a session that polls for the end of another session's short work.
// Checks interrupts.
void pause_briefly();

// Waits until each transaction of another session that holds the lock now has ended. False when no
// such transaction exists, or at `limit` on the monotonic clock.
bool outwait_holders(LockKind kind, uint64 key, int64 limit);

// A transaction of another session that holds a lock in conflict with `mode`; invalid: none. The
// call takes no lock.
VirtualTransactionId conflicting_holder(LockKind kind, uint64 key, LOCKMODE mode);

// True when no other session holds a lock in conflict with `mode`; the check keeps nothing.
bool is_lock_free(LockKind kind, uint64 key, LOCKMODE mode);

// True when this session holds the lock in this mode or in a stronger mode.
bool holds_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

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
