#include "limit/levels.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "limit/queue_marks.hpp"
#include "limit/rate_credit.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/promotion_marks.hpp"

namespace pulse {
namespace {

LevelGroup* group_of(const Level& level) {
  DatabaseState* database = this_database();
  return database ? &database->level_groups[level_group(level.hash)] : nullptr;
}

// Counts at most `limit` jobs, because more jobs make no difference.
int64 count_rows(IndexLookup* jobs, ScanKey keys, int64 limit, bool is_open, int64 counted) {
  seek_keys(jobs, keys);
  while (counted < limit && next_row(jobs)) {
    CHECK_FOR_INTERRUPTS();
    counted +=
        !is_open || DatumGetObjectId(value_of(jobs->row, kJobState)) == catalog()->state_ready;
  }
  return counted;
}

// The open and running jobs of a level, or the open jobs alone. The names within the level lie from
// 'level/' to below 'level0': '0' follows '/' in the order of bytes.
int64 count_within(const Level& level, Relation job, Snapshot snapshot, int64 limit, bool is_open,
                   const LevelCounts& counts) {
  const char* name = TextDatumGetCString(level.name);
  IndexLookup jobs;
  open_index_lookup(&jobs, job, catalog()->job_open_idx, snapshot, 2);
  ScanKeyData keys[2];
  init_text_key(&keys[0], 1, BTGreaterEqualStrategyNumber, F_TEXT_GE, level.name);
  init_text_key(&keys[1], 1, BTLessEqualStrategyNumber, F_TEXT_LE, level.name);
  const UnshownPlaces& unshown = counts.unshown;
  int64 unshown_jobs = unshown.jobs ? unshown.within(unshown.jobs, level) : 0;
  int64 counted = count_rows(&jobs, keys, limit, is_open, unshown_jobs);
  init_text_key(&keys[0], 1, BTGreaterEqualStrategyNumber, F_TEXT_GE,
                CStringGetTextDatum(psprintf("%s/", name)));
  init_text_key(&keys[1], 1, BTLessStrategyNumber, F_TEXT_LT,
                CStringGetTextDatum(psprintf("%s0", name)));
  counted = count_rows(&jobs, keys, limit, is_open, counted);
  close_index_lookup(&jobs);
  return counted;
}

KnownLevel* know_level(Level* level, LevelCounts* counts) {
  level->known = known_level(counts->known, level->hash);
  if (level->known) return level->known;
  level->known = static_cast<KnownLevel*>(palloc0(sizeof(KnownLevel)));
  level->known->next = counts->known;
  level->known->hash = level->hash;
  level->known->name = level->name;
  level->known->rate = level->rate;
  return counts->known = level->known;
}

// Counts again only where the level seems full: elsewhere a count that is too high does no harm.
void find_taken(Level* level, Relation job, Snapshot snapshot, LevelCounts* counts) {
  KnownLevel* known = know_level(level, counts);
  if (!known->is_counted || (known->taken >= level->total && known->frees != level->frees)) {
    known->taken = count_within(*level, job, snapshot, level->total, false, *counts);
    known->frees = level->frees;
    known->is_counted = true;
  }
  level->frees = known->frees;
}

// Says in shared memory that the group has a level with a rate. Claims of jobs in this group let
// promotions read the tokens again.
void note_rated(const Level& level) {
  DatabaseState* database = this_database();
  uint64 group = UINT64CONST(1) << level_group(level.hash);
  if (database && !(pg_atomic_read_u64(&database->rated_levels) & group))
    pg_atomic_fetch_or_u64(&database->rated_levels, group);
}

bool is_limited(const Level& level) { return level.total != kUnlimited || level.rate.rate; }

int64 unused_tokens(const Level& level) {
  return level.known->reading.tokens - level.known->reading.open;
}

void return_unused(Level* level, int opened) {
  if (level->credit > 0) return_credit(level->hash, level->credit - opened);
  level->credit = 0;
}

bool try_lock(Level* level, LOCKMODE mode) {
  if (!try_advisory_lock(LockKind::kLevel, level->hash, mode)) return false;
  level->held = mode;
  return true;
}

void unlock(Level* level) {
  if (level->held != NoLock) release_advisory_lock(LockKind::kLevel, level->hash, level->held);
  level->held = NoLock;
}

}  // namespace

FreedPlaces freed_places() {
  FreedPlaces freed = {};
  DatabaseState* database = this_database();
  for (int i = 0; database && i < kLevelGroups; i++)
    freed.of_group[i] = pg_atomic_read_u64(&database->level_groups[i].frees);
  pg_read_barrier();  // the snapshot shows all ends that `freed` has counted
  return freed;
}

Levels levels_of(Datum queue_name, const FreedPlaces& freed) {
  text* name = DatumGetTextPP(queue_name);
  LevelNames names = level_names(name);
  Levels levels = {};
  levels.count = names.count;
  for (int i = 0; i < names.count; i++) {
    Level* level = &levels.level[i];
    level->name =
        i == names.count - 1
            ? queue_name
            : PointerGetDatum(cstring_to_text_with_len(VARDATA_ANY(name), names.length[i]));
    level->hash = fnv1a(VARDATA_ANY(name), names.length[i]);
    level->identity = queue_identity(level->name);
    level->frees = freed.of_group[level_group(level->hash)];
  }
  return levels;
}

bool try_lock_levels(Levels* levels) {
  int own = levels->count - 1;
  for (int i = 0; i < own; i++)
    if (!try_lock(&levels->level[i], ShareLock)) return false;
  levels->holds_queue = try_advisory_lock(LockKind::kQueue, levels->level[own].hash, ExclusiveLock);
  return levels->holds_queue;
}

bool holds_locks_of(const Levels& levels) {
  for (int i = 0; i < levels.count - 1; i++)
    if (!holds_advisory_lock(LockKind::kLevel, levels.level[i].hash, ShareLock)) return false;
  uint64 queue = levels.level[levels.count - 1].hash;
  return holds_advisory_lock(LockKind::kQueue, queue, ExclusiveLock);
}

bool try_lock_limited_levels(Levels* levels) {
  for (int i = 0; i < levels->count; i++) {
    Level* level = &levels->level[i];
    if (!is_limited(*level)) continue;
    // Of two promotions that share the lock, the last to give back the shared lock gets the
    // exclusive lock.
    unlock(level);
    if (!try_lock(level, ExclusiveLock)) return false;
  }
  return true;
}

bool take_credits(Levels* levels) {
  for (int i = 0; i < levels->count; i++) {
    Level* level = &levels->level[i];
    if (!is_limited(*level)) continue;
    if (i < levels->count - 1 && level->total == kUnlimited && !level->paused &&
        take_credit(level->hash, levels->concurrency)) {
      level->credit = levels->concurrency;
      continue;
    }
    while (--i >= 0) return_unused(&levels->level[i], 0);
    return false;
  }
  return true;
}

void unlock_levels(Levels* levels, LevelCounts* counts) {
  for (int i = 0; i < levels->count; i++) {
    Level* level = &levels->level[i];
    bool is_queue = i == levels->count - 1;
    if (is_queue && levels->holds_queue)
      release_advisory_lock(LockKind::kQueue, level->hash, ExclusiveLock);
    if (level->held == ExclusiveLock && !is_queue) continue;
    forget_level(counts->known, level->hash);
    unlock(level);
  }
}

void read_levels(Levels* levels, Snapshot snapshot) {
  Datum names[kMaxLevels] = {};
  LevelSettings settings[kMaxLevels];
  int own = levels->count - 1;
  for (int i = 0; i <= own; i++) names[i] = levels->level[i].name;
  read_settings(snapshot, names, levels->count, settings);
  levels->is_limited = false;
  levels->fair = -1;
  for (int i = 0; i <= own; i++) {
    Level* level = &levels->level[i];
    level->paused = settings[i].paused;
    level->total = settings[i].total;
    level->rate = settings[i].rate;
    if (settings[i].fair && levels->fair < 0) levels->fair = i;
    levels->is_limited |= is_limited(*level);
    if (level->rate.rate) note_rated(*level);
  }
  levels->concurrency = settings[own].concurrency;
  levels->strict = settings[own].strict;
  levels->paused_by_end = levels->strict && settings[own].paused_by_end;
  levels->weight = settings[own].weight;
}

// A caller that only asks leaves the credit alone.
void find_reading(Level* level, Relation job, Snapshot snapshot, LevelCounts* counts) {
  KnownLevel* known = know_level(level, counts);
  if (known->reading.is_made) return;
  int64 open = count_within(*level, job, snapshot, PG_INT64_MAX, true, *counts);
  bool is_alone = level->held == ExclusiveLock;
  int64 credit = is_alone ? take_all_credit(level->hash) : credit_of(level->hash);
  known->reading = read_rate(level->rate, level->name, snapshot, open, credit);
}

void find_places_left(Levels* levels, Relation job, Snapshot snapshot, LevelCounts* counts) {
  levels->places_left = PG_INT32_MAX;
  levels->blocker = -1;
  for (int i = 0; i < levels->count; i++) {
    Level* level = &levels->level[i];
    int64 places_left = PG_INT32_MAX;
    if (level->paused) {
      // A queue without levels above: the end of the queue's pause sets the queue mark.
      if (levels->count == 1) continue;
      places_left = 0;
    } else if (level->total != kUnlimited) {
      find_taken(level, job, snapshot, counts);
      places_left = level->total - level->known->taken;
    }
    if (level->credit > 0) {
      places_left = level->credit;
    } else if (!level->paused && level->rate.rate) {
      find_reading(level, job, snapshot, counts);
      places_left = Min(places_left, unused_tokens(*level));
    }
    if (places_left >= levels->places_left) continue;
    levels->places_left = static_cast<int>(Max(places_left, 0));
    levels->blocker = i;
  }
}

void count_opened(Levels* levels, int opened) {
  Assert(holds_locks_of(*levels));
  for (int i = 0; i < levels->count; i++) {
    Level* level = &levels->level[i];
    KnownLevel* known = level->known;
    return_unused(level, opened);
    if (!known) continue;
    known->taken += opened;
    RateReading* reading = &known->reading;
    if (!reading->is_made || (opened == 0 && !reading->is_new)) continue;
    reading->open += opened;
    reading->is_new = false;
    known->is_changed = true;
    levels->has_changed |= i == levels->count - 1;
  }
}

void wait_for_level(const Levels& levels, int bucket) {
  const Level& level = levels.level[levels.blocker];
  LevelGroup* group = group_of(level);
  if (!group) return;
  DatabaseState* database = this_database();
  // The bit comes first: end_wait_walk(), which forgets the level, reads the bits once more.
  set_bit(group->waits, bucket);
  uint64 known = 0;
  if (!pg_atomic_compare_exchange_u64(&group->level, &known, level.hash) && known != level.hash)
    pg_atomic_write_u64(&group->level, kManyLevels);
  pg_atomic_fetch_or_u64(&database->waiting_levels, UINT64CONST(1) << level_group(level.hash));
  if (pg_atomic_read_u64(&group->frees) != level.frees) set_promotion_mark(database, bucket);
  set_dry_timer(level);
}

bool is_dry(const Level& level) {
  return level.rate.rate && !level.paused &&
         (level.total == kUnlimited || unused_tokens(level) < level.total - level.known->taken);
}

TimestampTz dry_until(const Level& level) {
  if (!level.rate.rate || level.paused || unused_tokens(level) > 0) return 0;
  const RateReading& reading = level.known->reading;
  int64 at = next_token_at(level.rate, reading);
  return at == PG_INT64_MAX ? 0 : wall_now() + Max(at - reading.now, 1);
}

void set_dry_timer(const Level& level) {
  LevelGroup* group = group_of(level);
  TimestampTz at = dry_until(level);
  if (!group || !at) return;
  lower_due(&group->dry_until, at);
  note_parked_due(at);
}

void free_dry_levels(DatabaseState* database, TimestampTz now) {
  for (int i = 0; i < kLevelGroups; i++) {
    pg_atomic_uint64* dry_until = &database->level_groups[i].dry_until;
    uint64 at = pg_atomic_read_u64(dry_until);
    if (at > static_cast<uint64>(now)) {
      if (at != kNever) lower_due(&database->parked_due, static_cast<TimestampTz>(at));
    } else if (pg_atomic_compare_exchange_u64(dry_until, &at, kNever)) {
      pg_atomic_fetch_add_u64(&database->level_groups[i].frees, 1);
      pg_atomic_fetch_or_u64(&database->freed_levels, UINT64CONST(1) << i);
    }
  }
}

WaitWalk begin_wait_walk(int group) {
  int first = static_cast<int>(
      pg_atomic_read_u32(&this_database()->level_groups[group].next_bucket) % kQueueBuckets);
  return {group, first, first + kQueueBuckets};
}

bool take_wait(WaitWalk* walk, int* bucket) {
  LevelGroup* group = &this_database()->level_groups[walk->group];
  while (walk->position < walk->end) {
    int at = walk->position % kQueueBuckets;
    uint64 later = pg_atomic_read_u64(&group->waits[at / 64]) >> (at % 64);
    if (!later) {
      walk->position += 64 - at % 64;
      continue;
    }
    walk->position += __builtin_ctzll(later) + 1;
    if (walk->position > walk->end) break;
    *bucket = (walk->position - 1) % kQueueBuckets;
    if (!take_bit(group->waits, *bucket)) continue;
    pg_atomic_write_u32(&group->next_bucket, static_cast<uint32>(walk->position % kQueueBuckets));
    return true;
  }
  return false;
}

void end_wait_walk(int group) {
  DatabaseState* database = this_database();
  LevelGroup* waiting = &database->level_groups[group];
  uint64 mask = UINT64CONST(1) << group;
  if (has_any_bit(waiting->waits)) return;
  pg_atomic_fetch_and_u64(&database->waiting_levels, ~mask);
  pg_atomic_write_u64(&waiting->level, 0);
  pg_memory_barrier();
  if (!has_any_bit(waiting->waits)) return;
  // A queue has begun to wait meanwhile, and a commit may have found no waiting queue.
  pg_atomic_write_u64(&waiting->level, kManyLevels);
  pg_atomic_fetch_or_u64(&database->waiting_levels, mask);
  pg_atomic_fetch_or_u64(&database->freed_levels, mask);
}

void begin_next_walk_at(int group, int bucket) {
  pg_atomic_write_u32(&this_database()->level_groups[group].next_bucket,
                      static_cast<uint32>(bucket));
}

void put_wait_back(const WaitWalk& walk, int bucket) {
  set_bit(this_database()->level_groups[walk.group].waits, bucket);
}

bool waits_for_one_level(int group) {
  return pg_atomic_read_u64(&this_database()->level_groups[group].level) != kManyLevels;
}

}  // namespace pulse
