// Promotion marks: queue marks and parent marks, as a set, and those that a transaction sets.
#pragma once

#include "shared/front.hpp"
#include "shared/memory.hpp"

namespace pulse {

struct PromotionMarks {
  bool any;
  uint64 words[kPromotionMarkWords];

  void add(int bucket) {
    any = true;
    words[bucket / 64] |= UINT64CONST(1) << (bucket % 64);
  }
  void add_all(const PromotionMarks& marks) {
    any |= marks.any;
    for (int i = 0; i < kPromotionMarkWords; i++) words[i] |= marks.words[i];
  }
};

// Sets the promotion mark of a queue bucket, or of parent_mark(). Cannot fail.
inline void set_promotion_mark(DatabaseState* database, int bucket) {
  set_bit(database->promotion_marks, bucket);
}
// Sets the promotion marks in shared memory. Cannot fail.
void set_promotion_marks(DatabaseState* database, const PromotionMarks& marks);
// Sets the bits of the level groups in `freed_levels`. Cannot fail.
void set_freed_levels(DatabaseState* database, uint64 groups);

// The news of a commit about level groups with a freed place, and about due times; 0: none. Neither
// function can fail.
void publish_freed_levels(DatabaseState* database, uint64 freed);
void publish_due_times(DatabaseState* database, const EarliestRunAt& due, TimestampTz parked_due,
                       TimestampTz sweep_due);

// The queues with a job or place for which this transaction sets a queue mark, by the hash of the
// queue's lock. A queue that the transaction has promoted since leaves the set. The transaction
// keeps such a queue locked to the end, so no other session checks it before the commit. After the
// promotion the queue has no job left to check.
struct UnpromotedQueues {
  static constexpr int kMaxQueues = 1024;
  static constexpr int kUnknown = kMaxQueues + 1;
  int count;  // kUnknown: any queue may be in the set
  uint64 queue[kMaxQueues];

  void add(uint64 hash);
  void remove(uint64 hash);
  // Clears the queue marks without a queue in the set.
  void narrow(PromotionMarks* marks) const;
};

}  // namespace pulse
