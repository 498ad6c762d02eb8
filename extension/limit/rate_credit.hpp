// Rates: owns the credit of levels with a rate in shared memory. Credit consists of tokens that a
// promotion has set aside, so that other promotions open jobs while they share the level.
//
// Invariants:
// - The row of the level counts the credit among the level's open jobs. So *open jobs and credit
//   together have a token each*, as open jobs have without credit.
// - Each reader and writer of RateCredit holds the lock of the entry (RateCredit::lock).
// - The commit that stored the row publishes the credit, while the transaction still holds the
//   level alone.
// - The next promotion that holds the level alone takes the credit back, and charges the missing
//   tokens as claimed. So a crash, like any other loss of credit, costs tokens and gives none.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Arranges that the commit sets the tokens aside, and returns how many it will set aside. The
// transaction stores the number in the level's row, and holds the level alone until the end.
int64 note_credit(uint64 level, int64 tokens);

// Takes all credit of a level that this transaction holds alone, and the credit that it has noted.
int64 take_all_credit(uint64 level);

// The tokens set aside for the level.
int64 credit_of(uint64 level);

// Takes so many tokens; false, and none taken, when the level has fewer. The caller shares the
// level until the end of the transaction.
bool take_credit(uint64 level, int64 tokens);
// Gives back tokens of take_credit(), by a caller that still shares the level. A level without
// credit has no use for the tokens.
void return_credit(uint64 level, int64 tokens);

// The settings of the level change, under the level's lock: drops the credit. 0: the settings of
// all members of a level change, so the credit of every level is dropped.
void void_credits(uint64 level);

// At the end of a transaction, or of an undone savepoint: publishes or drops the noted credit.
// Neither function can fail.
void publish_credit();
void forget_credit();

}  // namespace pulse
