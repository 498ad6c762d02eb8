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

// The rate that a row of pulse.queue sets.
Rate rate_of(TupleTableSlot* row);

// What a promotion finds while it holds the level's lock.
struct RateLook {
  bool is_made;
  int64 now;       // the liveness clock
  int64 full;      // when the level has all tokens again if no job is claimed
  int64 open;      // jobs that are open and that no claim has taken
  int64 tokens;    // the open ones use one each
  bool is_new;     // it differs from what is stored
  bool is_credit;  // no look was needed: these tokens were taken from the level's credit
};

// What a call has found of a level. It stays right while the lock of the level is held, but for
// places that came free. What looks find is stored once, however many queues were promoted.
struct KnownLevel {
  KnownLevel* next;
  uint64 hash;  // 0: the lock was given back
  Datum name;
  Rate rate;
  RateLook look;
  int64 claimed;    // by this claim since
  bool is_changed;  // the look, and not stored yet
  bool is_counted;
  uint64 frees;  // how often places came free in its group, before its jobs were counted
  int64 taken;   // at least as many jobs as are open or running
};

// NULL when nothing is known of it.
KnownLevel* known_level(KnownLevel* known, uint64 hash);

// What is known of this level, if anything, is stored and not used again.
void forget_level(KnownLevel* known, uint64 hash);

// Charges a claimed job of this queue to its levels with looks. False when one of these level
// groups has another level: the next promotion there charges it.
bool charge_claim(KnownLevel* known, const text* queue_name, uint64 rated_groups);

// Stores all looks, with what was claimed since. Each call that promotes ends with it.
void store_looks(KnownLevel* known);

// Charges as if claimed now what is neither among the open jobs nor among the credit.
RateLook look_at_rate(const Rate& rate, Datum level, Snapshot snapshot, int64 open, int64 credit);

// When one job more may be opened, on the liveness clock; PG_INT64_MAX: not before a claim.
int64 next_token_at(const Rate& rate, const RateLook& look);

}  // namespace pulse
