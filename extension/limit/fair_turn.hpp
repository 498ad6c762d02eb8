// Fairness: a walk along the ring of a fair level, in which the queues beneath the level open jobs
// in turn.
#pragma once

#include "limit/fair_ring.hpp"

namespace pulse {

// How many more jobs a call may promote, and the work that the call leaves undone, as far as walks
// along rings read and write both.
struct TurnBudget {
  int places_left;
  int pauses;      // how often the call may pause for a ring in which another claim walks
  FairTurn* turn;  // in which a queue is promoted, if any
  bool more;       // a queue has more jobs to open than `places_left` allowed
  bool busy;       // another claim walks along a ring
};

// Promotes one queue in its turn; filled in by promotion (queue/promote.cpp).
using PromoteQueue = void (*)(Datum name, int bucket, TurnBudget* budget);

// True when the queue is promoted in turns, and this turn is not the queue's own. The queue then
// joins the ring.
bool awaits_turn(const Levels& levels, int bucket, FairTurn* turn);

// True when the fair level, or a level above, blocks the queue in its turn. False when a level
// below the fair level blocks the queue.
bool blocks_turn(const Levels& levels, TurnBudget* budget);

// Whether a queue with a busy lock keeps its turn. A promotion gives the lock back soon, so the
// queue keeps the turn. An operator may hold the settings of the queue, or of a level below the
// fair level, for long, so the queue loses the turn.
bool keeps_turn(const Levels& levels, const FairTurn& turn);

// Gives turns to the queues of the ring with this number, until the budget has no places left.
void take_turns(int number, TurnBudget* budget, PromoteQueue promote);

}  // namespace pulse
