// A set of marks, of queues and of parents that have ended, and what a transaction marks.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

struct Marks {
  bool any;
  uint64 words[kMarkWords];

  void add(int slot) {
    any = true;
    words[slot / 64] |= UINT64CONST(1) << (slot % 64);
  }
  void add_all(const Marks& marks) {
    any |= marks.any;
    for (int i = 0; i < kMarkWords; i++) words[i] |= marks.words[i];
  }
};

void set_marks(DatabaseState* database, const Marks& marks);
void set_freed_levels(DatabaseState* database, uint64 groups);

// What a commit tells of the level groups in which it frees a place, and of due times; 0: none.
struct EarliestRunAt;
void publish_freed_levels(DatabaseState* database, uint64 freed);
void publish_due_times(DatabaseState* database, const EarliestRunAt& due, TimestampTz parked_due,
                       TimestampTz sweep_due);

// The queues that the marks of a transaction stand for, by the hash of their locks, but for those
// that it has promoted since and keeps locked to its end. No other session looks at these before
// the commit, and nothing is left there to look for.
struct UnpromotedQueues {
  static constexpr int kMaxQueues = 1024;
  static constexpr int kUnknown = kMaxQueues + 1;
  int count;  // kUnknown: perhaps all
  uint64 queue[kMaxQueues];

  void add(uint64 hash);
  void remove(uint64 hash);
  // Takes the marks away that stand for none of them.
  void narrow(Marks* marks) const;
};

}  // namespace pulse
