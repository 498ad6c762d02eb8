// Fronts: where the live entries of an index begin. Before a front lie dead entries, which an old
// snapshot keeps. A claim remembers a front for each task and priority (claim/low_water_mark), a
// promotion for each queue (queue/remembered_queue).
//
// Invariants:
// - A commit that makes a job live before a front lowers the front, after the commit is visible.
//   The commit counts in the generation of the bucket, under its lock.
// - A walk reads the generation before its snapshot. If the generation has moved since, the walk
//   may have missed a commit, and raises a front no further than the commit allows.
// - A front expires, because some rows become live without such a commit: rows written by hand, and
//   rows of a prepared transaction without notes.
#pragma once

#include "server/clocks.hpp"
#include "server/postgres.hpp"
#include "server/spinlock.hpp"

namespace pulse {

// The head of a bucket of fronts. Guard of the other fields: `lock`.
struct FrontBucket {
  slock_t lock;
  uint64 generation;  // number of lowerings

  void init() { SpinLockInit(&lock); }

  uint64 read_generation() {
    lock_spin(&lock);
    uint64 read = generation;
    unlock_spin(&lock);
    return read;
  }
};

// Walks over dead entries take at most a fiftieth of the time between two such walks.
constexpr int64 kWalkShare = 50;
constexpr int64 kMinExpiryUs = 1000000;
constexpr int64 kMaxExpiryUs = 60000000;

// When a front expires after a walk that began at `began`, and the `sharers` fronts after each
// other.
inline TimestampTz front_expiry(TimestampTz now, TimestampTz began, int64 least_us,
                                int sharers = 1) {
  int64 pause_us = Max((now - began) * kWalkShare, least_us);
  return now + Min(pause_us * sharers, kMaxExpiryUs);
}

// A time far ahead comes from a clock that was set back since.
inline bool has_front_expired(TimestampTz expires, TimestampTz now) {
  return expires <= now || expires - now > kMaxExpiryUs;
}

// The earliest key for each of 64 buckets, of the jobs that a transaction made live.
template <typename Key>
struct Earliest {
  uint64 bits;
  Key at[64];

  bool has(int bucket) const { return (bits >> bucket) & 1; }
  void lower(int bucket, Key key) {
    if (!has(bucket) || key < at[bucket]) at[bucket] = key;
    bits |= UINT64CONST(1) << bucket;
  }
};

// By task bit.
using EarliestRunAt = Earliest<TimestampTz>;

// The first parked jobs of queues in the order of promotions, by a remainder of the queue's bucket.
struct ParkedKey {
  int16 priority;
  TimestampTz run_at;

  bool operator<(const ParkedKey& other) const {
    return priority != other.priority ? priority < other.priority : run_at < other.run_at;
  }
};
constexpr int kParkedGroups = 64;
inline int parked_group(int queue_bucket) { return queue_bucket % kParkedGroups; }
using FirstParked = Earliest<ParkedKey>;

}  // namespace pulse
