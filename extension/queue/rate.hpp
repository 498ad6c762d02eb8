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

// A look at a level whose lock this transaction keeps until it ends.
struct KeptLook {
  uint64 hash;
  Datum name;
  Rate rate;
  RateLook look;
  int64 claimed;    // by this claim since
  bool is_changed;  // and not stored yet
};

// The looks of one claim: what they find is stored once, however many queues were promoted.
struct RateLooks {
  static constexpr int kKept = 8;
  KeptLook kept[kKept];
  int next;
};

KeptLook* kept_look(RateLooks* looks, uint64 hash);

// Keeps one more, and stores the one that it replaces.
KeptLook* keep_look(RateLooks* looks, uint64 hash, Datum name, const Rate& rate);

// The look at this level, if there is one, is stored and not kept.
void forget_look(RateLooks* looks, uint64 hash);

// Charges a claimed job of this queue to its levels with kept looks. False when one of these level
// groups has another level: the next promotion there charges it.
bool charge_claim(RateLooks* looks, const text* queue_name, uint64 rated_groups);

// Stores them all, with what was claimed since. Each call that promotes ends with it.
void store_looks(RateLooks* looks);

// Charges as if claimed now what is neither among the open jobs nor among the credit. A promotion
// that holds the lock of the level passes no snapshot: it reads the row as it has stored it last.
RateLook look_at_rate(const Rate& rate, Datum level, Snapshot snapshot, int64 open, int64 credit);

// When one job more may be opened, on the liveness clock; PG_INT64_MAX: not before a claim.
int64 next_token_at(const Rate& rate, const RateLook& look);

}  // namespace pulse
