// Fairness: the ring of a fair level as a source of queues. A walk along the ring names one queue
// after the other, each for its turn.
#pragma once

#include "job/scan.hpp"
#include "limit/fair_ring.hpp"
#include "limit/queue_source.hpp"

namespace pulse {

// A walk along one ring. The walk holds the ring's advisory lock.
struct RingSource : QueueSource {
  FairTurn turn;  // of the queue that the walk has named last
  JobScan parked;
  int number;         // of the ring
  uint64 lock_key;    // of the ring's advisory lock
  bool is_in_bucket;  // the walk has entered a queue bucket, and cleared the bucket's bit
  bool is_resumed;    // the next queue goes on with the turn that an earlier walk began
  bool is_left;       // a queue of the bucket waits for a further turn
  int bucket;         // the position in the index of parked jobs: bucket and name
  Datum name;
  int candidates_left;  // how many more queues the walk may name
  uint32 last_pass;     // the walk ends at this pass, unless a queue starts a job before
};

// Begins a walk along the ring with this number. False: no queue waits there, or another claim
// walks along the ring (`is_busy`). `pauses`: how often the call may pause for the other claim.
bool begin_turns(RingSource* walk, int number, int* pauses, bool* is_busy);

// Leaves the ring to the next walk. True: queues wait that the walk had no time for.
bool end_turns(RingSource* walk);

// True when the queue is promoted in turns, and this turn is not its own. It then joins the ring.
bool awaits_turn(const Levels& levels, int bucket, FairTurn* turn);

// True when the fair level, or a level above, blocks the queue in its turn. False when a level
// below the fair level blocks the queue, and outside of a turn.
bool blocks_turn(const Levels& levels, FairTurn* turn);

// Whether a queue with a busy lock keeps its turn. A promotion gives the lock back soon, so the
// queue keeps the turn. An operator may hold the settings of the queue, or of a level below the
// fair level, for long, so the queue loses the turn.
bool keeps_turn(const Levels& levels, const FairTurn& turn);

}  // namespace pulse
