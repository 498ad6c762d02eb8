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
