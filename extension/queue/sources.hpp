// Sources of queues outside of rings: the promotion marks, and the places that came free in levels.
#pragma once

#include "job/scan.hpp"
#include "limit/admission.hpp"
#include "queue/places.hpp"

namespace pulse {

// How many more jobs a call may promote, and the work left over.
struct PromotionBudget {
  int places_left;
  // How many more promotion marks, and queues without a job to start, are checked for free.
  int free_checks;
  int pauses;      // how often the call may pause for a ring in which another claim walks
  bool lets_join;  // without places left, queues of fair levels still join their rings
  bool more;       // a queue has more jobs to open than `places_left` allowed
  bool busy;       // another transaction kept the promotion from a queue, a job or a ring
  AdmissionContext context;
  PlacedJobs* placed;  // null: no claim promotes
  JobScan names;       // the names of queues; null until a source needs a name
};

// Whether the call may promote a further queue.
inline bool may_promote(const PromotionBudget& budget) {
  return budget.places_left > 0 || (budget.lets_join && !budget.more);
}

// Sets the queue mark of a queue again where the promotion has left a job to start.
void keep_queue_mark(PromotionBudget* budget, const Candidate& queue, const Outcome& outcome);

// The queues of one queue bucket, in the order of their names. Where the last call of this session
// ended within the bucket, the queues behind its turn come first.
struct BucketNames {
  int bucket;     // -1: no further name
  Datum name;     // of the last queue
  Datum resumed;  // the queue that had the last turn; 0: the names begin with the first
  Datum started;  // the last queue of which this call has started a job; 0: none
  bool is_again;  // the names up to `resumed` are coming
};

// Takes up to `marks_left` promotion marks, and names the queues of each. Parent marks are resolved
// on the way. A queue mark that leads to no job to start does not count while free checks are left,
// so that a claim finds the job behind the queue marks of queues whose jobs have ended.
struct MarkSource : QueueSource {
  PromotionBudget* budget;
  BucketNames names;
  int marks_left;
  int places;  // `places_left` when the last queue mark was taken; -1: that queue mark counts
  // The bucket of the first queue that got no place for its job, and so keeps its turn; -1: none.
  int passed_over;
};
MarkSource begin_marks(PromotionBudget* budget, int max_marks);
// Sets the queue mark of the bucket again, if further queues of the bucket remain.
void end_marks(MarkSource* marks);

// Names one after the other the queues that wait for a level in which a place came free, until the
// level blocks a queue again.
struct FreedLevelSource : QueueSource {
  PromotionBudget* budget;
  BucketNames names;
  int buckets_left;  // how many more queue buckets the source may name
  WaitWalk walk;     // group -1: no walk
  int next_bucket;   // at which the next walk begins: queues that found no place come first
  // Of the queues of the bucket: a lock was busy, and a level of the group blocks a queue again.
  bool met_lock;
  bool is_blocked;
};
FreedLevelSource begin_freed_levels(PromotionBudget* budget, int max_buckets);
// Puts the rest of the walk back.
void end_freed_levels(FreedLevelSource* levels);

}  // namespace pulse
