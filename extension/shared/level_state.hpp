// Levels of queues in shared memory: which queues wait for a level, and the tokens set aside.
//
// Invariants:
// - A queue that waits for a level has its bit in the level's group, or a queue mark. The promotion
//   that meets the full level sets the bit; the walk that promotes the queue clears it
//   (limit/levels.hpp).
// - Each commit that frees a place counts the place before it reads the bits.
// - A credit belongs to one level at a time (limit/rate_credit.hpp).
#pragma once

#include "server/postgres.hpp"
#include "shared/hashes.hpp"

namespace pulse {

// Queues that wait for a place in a level of this group, or for the end of a level's pause. Guard
// of all fields: atomic.
struct LevelGroup {
  pg_atomic_uint64 frees;  // incremented by each commit that frees a place in a level of the group
  // Hash of the only level with waiting queues; kManyLevels: several levels.
  pg_atomic_uint64 level;
  pg_atomic_uint64 dry_until;    // when a rated level of the group has a token again
  pg_atomic_uint32 next_bucket;  // where the next walk over `waits` begins
  // A bit for each queue bucket with a waiting queue.
  pg_atomic_uint64 waits[kQueueWords];
};
constexpr uint64 kManyLevels = ~UINT64CONST(0);

// Tokens of a level with a rate, which promotions take without holding the level alone
// (rate_credit.hpp). Guard of the other fields: `lock`. A promotion that takes or gives back tokens
// also holds the level's advisory lock (kLevel).
struct RateCredit {
  slock_t lock;
  uint64 level;  // hash of the level's name; 0: none
  int64 tokens;
};
constexpr int kRateCredits = 16;  // number of entries; a level hashes to an entry

}  // namespace pulse
