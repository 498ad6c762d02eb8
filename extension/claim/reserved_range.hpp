// Takes a range of rows for one claim. The claim reads the rows, moves the mark over them, and only
// then locks and updates them one by one. Other claims continue after the range
// (low_water_mark.hpp). Otherwise concurrent claims would take rows in turns, each reading all of
// them.
#pragma once

#include "claim/claim.hpp"

namespace pulse {

// Continues after the rows of other claims if the current row is theirs. True when it was.
bool skip_claimed(Claim* claim, TaskCursor* cursor);

// Takes a range of the best cursor. True when the cursor has moved; false when the claim must
// consider the current row by itself.
bool take_range(Claim* claim, TaskCursor* cursor);

// Called before the claim takes a single row, so that other claims may skip it.
void publish_walk(TaskCursor* cursor);

}  // namespace pulse
