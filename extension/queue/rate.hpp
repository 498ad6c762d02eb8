// Rates of levels: how many jobs of a level may be claimed in a time of the liveness clock. A level
// has at most `burst` tokens, and gets a token each per/rate. A promotion opens no more jobs than
// there are tokens, and charges those that have left the open ones since the last look.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Rate {
  int rate;  // 0: none
  int burst;
  int64 per_us;
};

// What a promotion finds while it holds the level's lock.
struct RateLook {
  bool is_made;
  int64 now;     // the liveness clock
  int64 full;    // when the level has all tokens again if no job is claimed
  int64 open;    // jobs that are open and that no claim has taken
  int64 tokens;  // the open ones use one each
  bool is_new;   // it differs from what is stored
};

// Charges as if claimed now what is no longer among the open jobs.
RateLook look_at_rate(const Rate& rate, Datum level, int64 open);

// Stores what it found and opened.
void store_look(Datum level, RateLook* look);

// When one job more may be opened, on the liveness clock; PG_INT64_MAX: not before a claim.
int64 next_token_at(const Rate& rate, const RateLook& look);

}  // namespace pulse
