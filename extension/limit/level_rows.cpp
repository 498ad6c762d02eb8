// Levels of queues as SQL sees them, in the snapshot of the calling statement: see
// sql/queue/level.sql.
#include "access/catalog.hpp"
#include "limit/fair_ring.hpp"
#include "limit/levels.hpp"
#include "limit/queue_marks.hpp"
#include "limit/rate_credit.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

NullableDatum token_moment(const Level& level) {
  TimestampTz at = dry_until(level);
  return {TimestampTzGetDatum(at), at == 0};
}

// A standby has no liveness clock, by which rates go, and promotes nothing.
Levels levels_with_settings(Datum queue_name) {
  Levels levels = levels_of(queue_name);
  read_levels(&levels, GetActiveSnapshot());
  for (int i = 0; i < levels.count && RecoveryInProgress(); i++) levels.level[i].rate = {};
  return levels;
}

Levels levels_with_places(Datum queue_name) {
  Levels levels = levels_with_settings(queue_name);
  LevelCounts counts = {};
  Relation job = table_open(catalog()->job, AccessShareLock);
  find_places_left(&levels, job, GetActiveSnapshot(), &counts);
  table_close(job, NoLock);
  return levels;
}

// Finds the tokens of the level, if it has a rate.
Level level_with_tokens(Datum name) {
  Levels levels = levels_with_settings(name);
  Level level = levels.level[levels.count - 1];
  LevelCounts counts = {};
  Relation job = table_open(catalog()->job, AccessShareLock);
  if (level.rate.rate) find_reading(&level, job, GetActiveSnapshot(), &counts);
  table_close(job, NoLock);
  return level;
}

}  // namespace
}  // namespace pulse

// pulse_internal.levels_of(queue_name): the names of the queue's levels, root first.
PULSE_FUNCTION(pulse_levels_of) {
  pulse::Levels levels = pulse::levels_of(PG_GETARG_DATUM(0));
  Datum names[pulse::kMaxLevels];
  for (int i = 0; i < levels.count; i++) names[i] = levels.level[i].name;
  PG_RETURN_ARRAYTYPE_P(construct_array(names, levels.count, TEXTOID, -1, false, TYPALIGN_INT));
}

// pulse_internal.level_places_left(queue_name)
PULSE_FUNCTION(pulse_level_places_left) {
  using namespace pulse;
  Levels levels = levels_with_places(PG_GETARG_DATUM(0));
  bool is_paused = false;
  for (int i = 0; i < levels.count; i++) is_paused |= levels.level[i].paused;
  bool is_limited = levels.blocker >= 0;
  const Level& least = levels.level[Max(levels.blocker, 0)];
  PG_RETURN_DATUM(
      result_row(fcinfo, {{Int64GetDatum(levels.places_left), !is_limited},
                          {least.name, !is_limited},
                          {Int32GetDatum(least.total), !is_limited || least.total == kUnlimited},
                          given(BoolGetDatum(is_paused)),
                          given(Int32GetDatum(levels.concurrency)),
                          given(BoolGetDatum(levels.strict)),
                          given(BoolGetDatum(is_limited && is_dry(least))),
                          is_limited ? token_moment(least) : kNull}));
}

// pulse_internal.tokens_of(level)
PULSE_FUNCTION(pulse_tokens_of) {
  using namespace pulse;
  Level level = level_with_tokens(PG_GETARG_DATUM(0));
  bool is_rated = level.rate.rate != 0;
  RateReading reading = is_rated ? level.known->reading : RateReading{};
  PG_RETURN_DATUM(result_row(fcinfo, {{Int64GetDatum(reading.tokens), !is_rated},
                                      {Int64GetDatum(reading.open), !is_rated},
                                      token_moment(level)}));
}

// pulse_internal.note_levels(queue_name, of_members): the settings of the level change. Claims
// check all queues that wait for a level; for the settings of members, claims check every queue.
PULSE_FUNCTION(pulse_note_levels) {
  bool of_members = PG_GETARG_BOOL(1);
  pulse::void_credits(of_members ? 0 : pulse::fnv1a(PG_GETARG_TEXT_PP(0)));
  pulse::note_level_settings(of_members);
  PG_RETURN_BOOL(true);
}

// pulse_internal.is_marked(queue_name): also true of a queue that waits for a level in which a
// place came free.
PULSE_FUNCTION(pulse_is_marked) {
  pulse::DatabaseState* database = pulse::this_database();
  if (!database) PG_RETURN_BOOL(false);
  pulse::QueuePlace place = pulse::place_in_queue(PG_GETARG_TEXT_PP(0));
  // The first check covers every queue.
  bool is_marked =
      pulse::is_first_check_due() || pulse::is_bit_set(database->promotion_marks, place.bucket);
  uint64 freed = pg_atomic_read_u64(&database->freed_levels) & place.level_groups;
  for (; freed; freed &= freed - 1)
    is_marked |=
        pulse::is_bit_set(database->level_groups[__builtin_ctzll(freed)].waits, place.bucket);
  PG_RETURN_BOOL(is_marked || pulse::waits_in_ring(place.bucket));
}
