// Hash buckets: queues, parents, levels and tasks hash to bits of shared memory.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kTaskBits = 64;        // number of task bits; a task hashes to a task bit
constexpr int kQueueBuckets = 8192;  // number of queue marks; a queue hashes to a queue mark
constexpr int kQueueWords = kQueueBuckets / 64;
// number of parent marks; a job hashes to a parent mark by its id
constexpr int kParentBuckets = 4096;
constexpr int kParentWords = kParentBuckets / 64;
constexpr int kPromotionMarkWords = kQueueWords + kParentWords;
// number of level groups; a limited level of queues hashes to a level group
constexpr int kLevelGroups = 8;
constexpr uint64 kAllLevelGroups = (UINT64CONST(1) << kLevelGroups) - 1;

// Bits of words in shared memory, by atomic operations, which are barriers where they write.
inline void set_bit(pg_atomic_uint64* words, int bit) {
  pg_atomic_fetch_or_u64(&words[bit / 64], UINT64CONST(1) << (bit % 64));
}
// Clears the bit. False: the bit was clear.
inline bool take_bit(pg_atomic_uint64* words, int bit) {
  uint64 mask = UINT64CONST(1) << (bit % 64);
  return pg_atomic_fetch_and_u64(&words[bit / 64], ~mask) & mask;
}
inline bool is_bit_set(pg_atomic_uint64* words, int bit) {
  return (pg_atomic_read_u64(&words[bit / 64]) >> (bit % 64)) & 1;
}
template <int kWords>
bool has_any_bit(pg_atomic_uint64 (&words)[kWords]) {
  for (pg_atomic_uint64& word : words)
    if (pg_atomic_read_u64(&word)) return true;
  return false;
}

// The bucket of a queue. An index stores buckets, so the function must never change.
int queue_bucket(const text* name);
inline int bucket_of_hash(uint64 name) {
  return static_cast<int>((name ^ (name >> 32)) % kQueueBuckets);
}

// The bucket of a job that other jobs wait for: an index of the parent marks. Ids made at one time
// follow each other, so the remainder spreads ids best. An index stores buckets, so the function
// must never change.
inline int parent_bucket(int64 job_id) { return static_cast<int>(job_id & (kParentBuckets - 1)); }
constexpr int parent_mark(int parent_bucket) { return kQueueBuckets + parent_bucket; }

// The task bit of an identifier.
int task_bit(const text* identifier);

}  // namespace pulse
