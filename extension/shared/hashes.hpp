// Hash buckets: queues, parents, levels and tasks hash to bits of shared memory.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kTaskBits = 64;      // number of task bits; a task hashes to a task bit
constexpr int kQueueSlots = 8192;  // number of queue marks; a queue hashes to a queue mark
constexpr int kQueueWords = kQueueSlots / 64;
// number of parent marks; a job hashes to a parent mark by its id
constexpr int kParentSlots = 4096;
constexpr int kParentWords = kParentSlots / 64;
constexpr int kMarkWords = kQueueWords + kParentWords;
// number of level groups; a limited level of queues hashes to a level group
constexpr int kLevelGroups = 8;
constexpr uint64 kAllLevelGroups = (UINT64CONST(1) << kLevelGroups) - 1;

// The slot of a queue. An index stores slots, so the function must never change.
int queue_slot(const text* name);
inline int slot_of_hash(uint64 name) {
  return static_cast<int>((name ^ (name >> 32)) % kQueueSlots);
}

// The slot of a job that other jobs wait for: an index of the parent marks. Ids made at one time
// follow each other, so the remainder spreads ids best. An index stores slots, so the function must
// never change.
inline int parent_slot(int64 job_id) { return static_cast<int>(job_id & (kParentSlots - 1)); }
constexpr int parent_mark(int parent_slot) { return kQueueSlots + parent_slot; }

// The task bit of an identifier.
int task_bit(const text* identifier);

}  // namespace pulse
