#include "wake/told_commit.hpp"

#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"

extern "C" {
#include "replication/syncrep.h"
}

namespace pulse {
namespace {

// From its wake-up to its flush a claim takes half of this where nothing else happens.
constexpr int64 kClaimUs = 200;
// Where a flush is faster than this, sharing it gains less than the wait costs.
constexpr uint32 kSlowFlushUs = 100;
// The timer adds as much again: twice in all, then.
constexpr long kLookEveryUs = 50;
// One flush in so many is made at once, which tells how long a flush takes now.
constexpr uint32 kMeasuredEvery = 32;
// What is measured may be the rest of a flush that others began, so what is longer counts more.
constexpr int64 kWeightOfLonger = 4;
constexpr int64 kWeightOfShorter = 16;

// Two that measure at once: the last one counts. A disk that stalls once is not slow for that: a
// flush counts as no longer than twice what is known.
void measure(SharedState* all, int64 took_us) {
  int64 known_us = Max(pg_atomic_read_u32(&all->flush_us), kSlowFlushUs);
  int64 more_us = Min(took_us, 2 * known_us) - known_us;
  int64 now_us = known_us + more_us / (more_us > 0 ? kWeightOfLonger : kWeightOfShorter);
  pg_atomic_write_u32(&all->flush_us, static_cast<uint32>(now_us));
}

// As the server flushes a commit: a failure is a PANIC.
void flush(XLogRecPtr end) {
  START_CRIT_SECTION();
  XLogFlush(end);
  END_CRIT_SECTION();
}

void flush_and_measure(SharedState* all, XLogRecPtr end) {
  int64 began = monotonic_us();
  flush(end);
  measure(all, monotonic_us() - began);
}

bool is_to_be_shared(SharedState* all) {
  return pg_atomic_fetch_add_u32(&all->told_commits, 1) % kMeasuredEvery != 0 &&
         pg_atomic_read_u32(&all->flush_us) >= kSlowFlushUs;
}

// Interrupts are held off here, as in every commit; it ends by itself. Who begins to flush after
// that finds the other at it, and waits for him.
void wait_for_claim(XLogRecPtr end) {
  int64 until = monotonic_us() + kClaimUs;
  while (flushed_up_to() < end && monotonic_us() < until) pg_usleep(kLookEveryUs);
}

}  // namespace

bool may_tell_before_flush() {
  SharedState* all = shared();
  if (!settings.wake_before_flush || !all || pg_atomic_read_u32(&all->waiting) == 0) return false;
  return !SyncRepStandbyNames || SyncRepStandbyNames[0] == '\0';
}

void flush_told_commit(bool is_woken_for_job) {
  SharedState* all = shared();
  XLogRecPtr end = XactLastCommitEnd;
  if (is_woken_for_job && is_to_be_shared(all)) {
    wait_for_claim(end);
    flush(end);
  } else {
    flush_and_measure(all, end);
  }
  // One may have been named that this session, in the middle of a statement, does not know of.
  SyncRepWaitForLSN(end, true);
}

}  // namespace pulse
