// Credit of rated levels: tokens that a promotion has set aside in shared memory, so that others
// open jobs while they share the level. The row of the level counts them among its open jobs, so
// *open jobs and credit together have a token each*, as open jobs have without. The next promotion
// that holds the level alone takes the credit back, and charges what is missing as claimed. So a
// crash, and whatever else loses credit, costs tokens and gives none.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Arranges that the commit sets them aside, and returns how many that will be. The transaction
// stores them in the row, and holds the level alone until it ends.
int64 note_credit(uint64 level, int64 tokens);

// Takes all credit of a level that this transaction holds alone, and what it has noted.
int64 take_all_credit(uint64 level);

// What is set aside for the level.
int64 credit_of(uint64 level);

// Takes so many tokens, or none and returns false. The caller shares the level until it ends.
bool take_credit(uint64 level, int64 tokens);
void return_credit(uint64 level, int64 tokens);

// The settings of the level change, under its lock: what was set aside is used no more. 0: those of
// the members of a level, whichever they are.
void void_credits(uint64 level);

// At the end of a transaction, or of an undone savepoint: what it noted is set aside, or forgotten.
void publish_credit();
void forget_credit();

}  // namespace pulse
