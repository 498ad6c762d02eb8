// Sources of queues: where a promotion gets the names of queues that may have a job to start. A
// source is the queue marks, the places that came free in levels, or the ring of a fair level.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Candidate {
  Datum name;
  int bucket;
};

// The changes of a promotion of a candidate, and the work that it left undone.
struct Outcome {
  int starts;          // how many jobs the promotion opened, placed or swapped
  int places;          // how many more places of the queue are taken
  bool lacks_places;   // the levels keep a due job of the queue from a place
  bool has_more;       // the queue has more jobs to start than the call or the turn allowed
  bool is_busy;        // another transaction kept the promotion from the queue or from a job
  bool met_lock;       // another transaction holds the lock of the queue or of a level
  int blocking_group;  // level group of the level for which the queue waits now; -1: none
};

struct QueueSource {
  // Names the next queue. False: no further queue.
  bool (*next)(QueueSource* source, Candidate* candidate);
  // Hears of the promotion of the queue, and keeps it if a job is left to start.
  void (*answer)(QueueSource* source, const Candidate& candidate, const Outcome& outcome);
};

}  // namespace pulse
