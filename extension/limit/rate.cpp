#include "limit/rate.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/table.hpp"
#include "limit/rate_credit.hpp"
#include "liveness/clock.hpp"
#include "server/advisory_lock.hpp"
#include "shared/queue_name.hpp"

namespace pulse {
namespace {

// The time in which a level gets so many tokens, rounded up.
int64 time_of(const Rate& rate, int64 tokens) {
  __int128 time = static_cast<__int128>(tokens) * rate.per_us;
  return static_cast<int64>((time + rate.rate - 1) / rate.rate);
}

// Charges as if claimed now. A claim costs one token, though the time of a token is rounded up.
void charge(const Rate& rate, RateReading* reading, int64 claims) {
  reading->now = live_now_us();
  // After a clock was set back, or the burst was lowered, the level is dry at most.
  int64 dry = reading->now + time_of(rate, rate.burst);
  reading->is_new = claims > 0 || reading->full > dry;
  reading->full = Max(Min(reading->full, dry), reading->now);
  __int128 left = static_cast<__int128>(dry - reading->full) * rate.rate;
  reading->tokens = Max(static_cast<int64>(left / rate.per_us) - claims, 0);
  reading->full = Min(reading->full + time_of(rate, claims), dry);
}

void store_reading(Datum level, const RateReading& reading, int64 credit) {
  int64 opened = reading.open + credit;
  JobTable table;
  open_extension_table(&table, catalog()->queue_rate);
  bool is_stored = false;
  with_row_of_text(table.relation, catalog()->queue_rate_key, level, table.snapshot,
                   [&table, &is_stored](TupleTableSlot* row) {
                     is_stored = true;
                     if (!try_lock_row(&table, row->tts_tid))
                       elog(ERROR, "the lock of a level does not protect the row of its rate");
                   });
  if (!is_stored) {
    Datum values[] = {level, Int64GetDatum(reading.full), Int64GetDatum(opened)};
    bool nulls[] = {false, false, false};
    insert_row(&table, values, nulls, lengthof(values));
  } else {
    JobChange change = {};
    change.set(kRateFullLive, Int64GetDatum(reading.full));
    change.set(kRateOpened, Int64GetDatum(opened));
    update_locked_row(&table, &change);
  }
  close_job_table(&table);
}

// How many tokens a reading may set aside: none where the rate is close to binding.
int64 spare_tokens(const Rate& rate, const RateReading& reading) {
  constexpr int64 kFewTokens = 1000;
  constexpr int kSpareShare = 4;
  int64 unused = reading.tokens - reading.open;
  bool is_far = unused >= kFewTokens && unused >= rate.burst / 2;
  return is_far ? unused / kSpareShare : 0;
}

// Without months, as set_queue() checks.
int64 microseconds_of(const Interval* per) { return per->time + per->day * USECS_PER_DAY; }

// Requires the level's lock where there is something to store: the transaction holds the level
// alone.
void store_known(KnownLevel* level) {
  if (level->claimed > 0) {
    charge(level->rate, &level->reading, level->claimed);
    level->reading.open -= level->claimed;
    level->is_changed = true;
  }
  if (level->is_changed) {
    Assert(holds_advisory_lock(LockKind::kLevel, level->hash, ExclusiveLock));
    int64 spare = spare_tokens(level->rate, level->reading);
    store_reading(level->name, level->reading, note_credit(level->hash, spare));
  }
  level->claimed = 0;
  level->is_changed = false;
}

}  // namespace

Rate rate_of(TupleTableSlot* row) {
  const Catalog* known = catalog();
  NullableDatum rate = field_of(row, known->queue_setting_rate);
  if (rate.isnull) return {};
  NullableDatum per = field_of(row, known->queue_setting_per);
  NullableDatum burst = field_of(row, known->queue_setting_burst);
  return {DatumGetInt32(rate.value), DatumGetInt32(burst.isnull ? rate.value : burst.value),
          per.isnull ? USECS_PER_SEC : microseconds_of(DatumGetIntervalP(per.value))};
}

// Locks the table in the mode that a later change needs, as open_job_scan() does.
RateReading read_rate(const Rate& rate, Datum level, Snapshot snapshot, int64 open, int64 credit) {
  RateReading reading = {};
  reading.is_made = true;
  Relation table = table_open(catalog()->queue_rate, RowExclusiveLock);
  with_row_of_text(table, catalog()->queue_rate_key, level, snapshot,
                   [&reading](TupleTableSlot* row) {
                     reading.full = DatumGetInt64(value_of(row, kRateFullLive));
                     reading.open = DatumGetInt64(value_of(row, kRateOpened));
                   });
  table_close(table, NoLock);
  // The clock is read after the snapshot that showed the open jobs, so no claim among the charged
  // jobs is later than the clock.
  charge(rate, &reading, Max(reading.open - open - credit, 0));
  reading.is_new |= credit > 0;
  reading.open = open;
  return reading;
}

KnownLevel* known_level(KnownLevel* known, uint64 hash) {
  while (known && known->hash != hash) known = known->next;
  return known;
}

void forget_level(KnownLevel* known, uint64 hash) {
  KnownLevel* level = known_level(known, hash);
  if (!level) return;
  store_known(level);
  level->hash = 0;
}

bool charge_claim(KnownLevel* known, const text* queue_name, uint64 rated_groups) {
  LevelNames levels = level_names(queue_name);
  bool is_charged = true;
  for (int i = 0; i < levels.count; i++) {
    uint64 hash = fnv1a(VARDATA_ANY(queue_name), levels.length[i]);
    KnownLevel* level = known_level(known, hash);
    if (level && level->reading.is_made)
      level->claimed++;
    else
      is_charged &= !((rated_groups >> level_group(hash)) & 1) || credit_of(hash) > 0;
  }
  return is_charged;
}

void store_readings(KnownLevel* known) {
  for (; known; known = known->next) store_known(known);
}

int64 next_token_at(const Rate& rate, const RateReading& reading) {
  if (reading.open >= rate.burst) return PG_INT64_MAX;
  return reading.full + time_of(rate, reading.open + 1) - time_of(rate, rate.burst);
}

}  // namespace pulse
