// A walk along the ring of a fair level, in which its members open jobs in turn.
#pragma once

#include "queue/parked_jobs.hpp"

namespace pulse {

using PromoteQueue = void (*)(Datum name, int slot, PromotionBudget* budget);

// True when the queue is promoted in turns, and this is not its own. It joins the ring.
bool awaits_turn(const Levels& levels, int slot, FairTurn* turn);

// The levels block the queue in its turn. False when one below the fair level does.
bool blocks_turn(const Levels& levels, PromotionBudget* budget);

// The queue is locked, and its turn waits for that. Settings of the queue, or of a level below the
// fair one, may be held long, so they cost it its turn.
bool keeps_turn(const Levels& levels, const FairTurn& turn);

// Gives turns to the queues of the ring with this number, until no job is to be opened any more.
void take_turns(int number, PromotionBudget* budget, PromoteQueue promote);

}  // namespace pulse
