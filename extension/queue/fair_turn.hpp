// Fairness: a walk along the ring of a fair level, in which the level's members open jobs in turn.
#pragma once

#include "queue/parked_jobs.hpp"

namespace pulse {

using PromoteQueue = void (*)(Datum name, int slot, PromotionBudget* budget);

// True when the queue is promoted in turns, and this turn is not the queue's own. The queue then
// joins the ring.
bool awaits_turn(const Levels& levels, int slot, FairTurn* turn);

// True when the fair level, or a level above, blocks the queue in its turn. False when a level
// below the fair level blocks the queue.
bool blocks_turn(const Levels& levels, PromotionBudget* budget);

// Whether a queue with a busy lock keeps its turn. A promotion gives the lock back soon, so the
// queue keeps the turn. An operator may hold the settings of the queue, or of a level below the
// fair level, for long, so the queue loses the turn.
bool keeps_turn(const Levels& levels, const FairTurn& turn);

// Gives turns to the queues of the ring with this number, until the budget has no places left.
void take_turns(int number, PromotionBudget* budget, PromoteQueue promote);

}  // namespace pulse
