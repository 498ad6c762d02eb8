#include "server/advisory_lock.hpp"

#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

LOCKTAG tag_of(LockKind kind, uint64 key) {
  LOCKTAG tag;
  SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, static_cast<uint32>(key >> 32), static_cast<uint32>(key),
                       static_cast<uint16>(kind));
  return tag;
}

// True when no other session holds a lock that conflicts; the check keeps nothing.
bool is_free(const LOCKTAG& tag, LOCKMODE mode) {
  if (LockAcquire(&tag, mode, false, true) == LOCKACQUIRE_NOT_AVAIL) return false;
  LockRelease(&tag, mode, false);
  return true;
}

}  // namespace

void advisory_lock(LockKind kind, uint64 key, LOCKMODE mode) {
  LOCKTAG tag = tag_of(kind, key);
  (void)LockAcquire(&tag, mode, false, false);
}

bool try_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode) {
  LOCKTAG tag = tag_of(kind, key);
  return LockAcquire(&tag, mode, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void release_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode) {
  Assert(holds_advisory_lock(kind, key, mode));
  LOCKTAG tag = tag_of(kind, key);
  (void)LockRelease(&tag, mode, false);
}

void pause_briefly() {
  constexpr long kPauseMs = 1;
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kPauseMs, PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

// Polls, because a wait in the lock table can only end early by an error.
bool outwait_holders(LockKind kind, uint64 key, int64 limit) {
  LOCKTAG tag = tag_of(kind, key);
  VirtualTransactionId* holder = GetLockConflicts(&tag, ExclusiveLock, nullptr);
  if (!VirtualTransactionIdIsValid(*holder)) return false;
  for (; VirtualTransactionIdIsValid(*holder); holder++) {
    while (!VirtualXactLock(*holder, false)) {
      if (monotonic_us() >= limit) return false;
      pause_briefly();
    }
  }
  return true;
}

VirtualTransactionId conflicting_holder(LockKind kind, uint64 key, LOCKMODE mode) {
  LOCKTAG tag = tag_of(kind, key);
  return *GetLockConflicts(&tag, mode, nullptr);
}

bool is_lock_free(LockKind kind, uint64 key, LOCKMODE mode) {
  return is_free(tag_of(kind, key), mode);
}

bool holds_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode) {
  LOCKTAG tag = tag_of(kind, key);
  return holds_lock(&tag, mode);
}

void hold_attachment(uint64 attachment) {
  LOCKTAG tag = tag_of(LockKind::kAttachment, attachment);
  (void)LockAcquire(&tag, ExclusiveLock, true, false);
}

bool holds_attachment(uint64 attachment) {
  return holds_advisory_lock(LockKind::kAttachment, attachment, ExclusiveLock);
}

bool attachment_is_free(uint64 attachment) {
  return !holds_attachment(attachment) &&
         is_free(tag_of(LockKind::kAttachment, attachment), ShareLock);
}

// Only this session adds to its advisory locks. Other sessions add to its list only locks of
// another method, where they need a lock on the fast path.
List* held_advisory_locks() {
  List* held = NIL;
  for (int partition = 0; partition < NUM_LOCK_PARTITIONS; partition++)
    visit_own_locks(partition, [&held](const PROCLOCK* lock) {
      const LOCKTAG& tag = lock->tag.myLock->tag;
      if (tag.locktag_lockmethodid != USER_LOCKMETHOD || lock->holdMask == 0) return;
      auto* found = static_cast<HeldLock*>(palloc(sizeof(HeldLock)));
      *found = {tag, lock->holdMask};
      held = lappend(held, found);
    });
  return held;
}

}  // namespace pulse

// pulse_internal.lock_worker_shared(id): takes the lock that a claim of this worker takes.
PULSE_FUNCTION(pulse_share_worker) {
  pulse::advisory_lock(pulse::LockKind::kWorker, static_cast<uint64>(PG_GETARG_INT64(0)),
                       ShareLock);
  PG_RETURN_BOOL(true);
}

// pulse_internal.try_lock_worker_shared(id): takes the worker's lock in share mode; false if
// another transaction holds the lock exclusively.
PULSE_FUNCTION(pulse_try_share_worker) {
  PG_RETURN_BOOL(pulse::try_advisory_lock(pulse::LockKind::kWorker,
                                          static_cast<uint64>(PG_GETARG_INT64(0)), ShareLock));
}

// pulse_internal.try_lock_worker(id): takes the worker's lock exclusively, as a transaction that
// declares the worker lost.
PULSE_FUNCTION(pulse_try_lock_worker) {
  PG_RETURN_BOOL(pulse::try_advisory_lock(pulse::LockKind::kWorker,
                                          static_cast<uint64>(PG_GETARG_INT64(0)), ExclusiveLock));
}

// pulse_internal.lock_worker(id): takes the worker's lock exclusively. Returns false while claims
// of the worker share the lock. Waits for a transaction that holds the lock exclusively: a sweep
// that declares the worker lost, or a claim of a poison suspect. Both are about to end.
PULSE_FUNCTION(pulse_lock_worker) {
  auto worker = static_cast<uint64>(PG_GETARG_INT64(0));
  using pulse::LockKind;
  // Where the share lock succeeds, either claims share the lock, or the exclusive holder has ended.
  if (!pulse::try_advisory_lock(LockKind::kWorker, worker, ExclusiveLock) &&
      !pulse::try_advisory_lock(LockKind::kWorker, worker, ShareLock))
    pulse::advisory_lock(LockKind::kWorker, worker, ExclusiveLock);
  PG_RETURN_BOOL(pulse::try_advisory_lock(LockKind::kWorker, worker, ExclusiveLock));
}

// pulse_internal.outwait_claims(worker_id): waits for the claims of this worker that are in
// progress now, but no longer than a commit takes on a slow disk.
PULSE_FUNCTION(pulse_outwait_claims) {
  constexpr int64 kPatienceUs = 5000000;
  (void)pulse::outwait_holders(pulse::LockKind::kWorker, static_cast<uint64>(PG_GETARG_INT64(0)),
                               pulse::monotonic_us() + kPatienceUs);
  PG_RETURN_VOID();
}
