// Locks of queues and levels: which transaction keeps a promotion from a queue.
#pragma once

#include "server/advisory_lock.hpp"

namespace pulse {

// The lock of a queue, or of one of its levels, that another transaction holds.
struct QueueLock {
  int length;  // of the level's name, a beginning of the queue's name; 0: no lock is held
  VirtualTransactionId holder;  // a transaction that holds the lock
};

// Finds the lock without taking one, because a promotion could meet it.
QueueLock find_queue_lock(const text* name);

inline bool is_queue_locked(const text* name) { return find_queue_lock(name).length > 0; }

// True while an operator's transaction changes settings of the level.
inline bool is_being_set(uint64 level) {
  return !is_lock_free(LockKind::kLevel, level, AccessShareLock);
}

}  // namespace pulse
