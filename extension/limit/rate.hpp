// Rates: how many jobs of a level may be claimed in a time of the liveness clock. Owns the rows of
// pulse.queue_rate. A level has at most `burst` tokens, and gets a new token each per/rate. A
// promotion opens no more jobs than the level has tokens. A reading charges a token for each job
// that was open at the reading before and is open no longer.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Rate {
  int rate;  // 0: no rate
  int burst;
  int64 per_us;
};

// The rate in a row of pulse.queue.
Rate rate_of(TupleTableSlot* row);

// A reading of a level's tokens, by a promotion that holds the level's lock.
struct RateReading {
  bool is_made;
  int64 now;     // the liveness clock
  int64 full;    // when the level has all tokens again if no job is claimed
  int64 open;    // jobs that are open and not claimed
  int64 tokens;  // each open job needs one of these tokens
  bool is_new;   // differs from the stored row
};

// The counts of one level, as known to one call. They stay right as long as the call holds the
// level's lock, except for places that came free. Each reading is stored once, however many queues
// the call promotes.
struct KnownLevel {
  KnownLevel* next;
  uint64 hash;  // 0: the lock was given back
  Datum name;
  Rate rate;
  RateReading reading;
  int64 claimed;    // jobs that this call has claimed since the reading
  bool is_changed;  // the reading is not stored yet
  bool is_counted;
  // How often the level's group had counted freed places, before the level's jobs were counted.
  uint64 frees;
  int64 taken;  // at least as many jobs as are open or running
};

// NULL when the call has counted nothing of the level.
KnownLevel* known_level(KnownLevel* known, uint64 hash);

// Stores the counts of this level, if any, and drops them, because the lock goes back.
void forget_level(KnownLevel* known, uint64 hash);

// Charges a claimed job of this queue to the levels with a reading. False when a further
// level of the queue may have a rate and has no credit: the next promotion there charges the job.
bool charge_claim(KnownLevel* known, const text* queue_name, uint64 rated_groups);

// Stores all readings, with the jobs claimed since. Each call that promotes ends with
// store_readings().
void store_readings(KnownLevel* known);

// Reads the tokens of a level. Charges as if claimed now each token that neither an open job nor
// the credit accounts for.
RateReading read_rate(const Rate& rate, Datum level, Snapshot snapshot, int64 open, int64 credit);

// When one job more may be opened, on the liveness clock; PG_INT64_MAX: not before a claim.
int64 next_token_at(const Rate& rate, const RateReading& reading);

}  // namespace pulse
