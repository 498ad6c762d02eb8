// Advisory locks of this extension, in a lock class that no SQL function can name. They last until
// the transaction ends or gives them back. Only the session lock of an attached worker lasts until
// its session ends or releases all locks (pg_advisory_unlock_all, DISCARD ALL).
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

// Waits.
void advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Never waits; false when another transaction holds a conflicting lock.
bool try_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Gives back a lock that try_advisory_lock() took.
void release_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// The session waits a millisecond, where it polls for what another one is about to end.
void pause_briefly();

// Waits until each transaction of another session that holds the lock now has ended. False when
// there is none, or at `limit` on the monotonic clock.
bool outwait_holders(LockKind kind, uint64 key, int64 limit);

// Which of the locks of a queue and its levels another transaction has.
struct QueueLock {
  int length;                   // of the name, as the queue's name begins; 0: none
  VirtualTransactionId holder;  // one of them
};

// Takes no lock, which a promotion could meet.
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

// An advisory lock of this session or its transaction, of this extension or of SQL.
struct HeldLock {
  LOCKTAG tag;
  LOCKMASK modes;
};

// HeldLock each, in the present memory context.
List* held_advisory_locks();

}  // namespace pulse
