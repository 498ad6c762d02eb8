// What a claim takes in one piece: the rows are looked at, then the mark is moved over them, so
// that other claims go on behind (low_water_mark.hpp), and only then they are locked and updated
// one by one. Claims that walk at the same time would else take rows in turns, each looking at all
// of them.
#pragma once

#include "claim/claim.hpp"

namespace pulse {

// Goes on behind what other claims have, if the row at hand is theirs. True when it was.
bool skip_claimed(Claim* claim, TaskCursor* cursor);

// Takes what comes first of the best cursor. False when the row at hand is to be considered by
// itself; true says that the cursor has moved.
bool take_range(Claim* claim, TaskCursor* cursor);

// Before a row is taken by itself: others may go past it.
void publish_walk(TaskCursor* cursor);

}  // namespace pulse
