#include "queue/promote.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "access/saved_plan.hpp"
#include "job/table.hpp"
#include "limit/fair_turn.hpp"
#include "limit/queue_marks.hpp"
#include "queue/parked_jobs.hpp"
#include "queue/places.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

constexpr int kFallenDueAtOnce = 1000;
// A promotion that reads more pages remembers the places and the front of the queue.
constexpr int kManyPages = 64;
constexpr int kQueuesOfOneCheck = 1000;
// How many promotion marks a call takes while queues only join their rings.
constexpr int kMaxJoins = 256;
// Another claim walks a ring for some milliseconds, unless the claim's process is stopped.
constexpr int kMaxPauses = 5;

void renew_table(PromotionBudget* budget) {
  if (budget->table.relation)
    take_new_snapshot(&budget->table);
  else
    open_job_table(&budget->table);
}

// The promotion takes the locks before the snapshot, so the snapshot shows every promotion that
// committed before.
bool lock_queue(PromotionBudget* budget, int bucket, Levels* levels) {
  FairTurn* turn = budget->turn;
  if (!try_lock_levels(levels) || !try_lock_queue(levels)) return false;
  renew_table(budget);
  read_levels(levels, budget->table.snapshot);
  levels->awaits_turn = awaits_turn(*levels, bucket, turn);
  levels->only_swaps = levels->awaits_turn && !turn && is_ring_blocked(levels->level[levels->fair]);
  if (!levels->is_limited || levels->awaits_turn || take_credits(levels)) return true;
  if (!try_lock_limited_levels(levels)) return false;
  renew_table(budget);
  read_levels(levels, budget->table.snapshot);
  return true;
}

// Opens jobs for the places left of the queue. `generation` precedes the snapshot. Requires the
// locks of the queue and of the levels above the queue.
void promote_locked(Datum name, int bucket, uint64 generation, Levels* levels,
                    PromotionBudget* budget) {
  Assert(holds_locks_of(*levels));
  JobTable* table = &budget->table;
  Queue queue = read_queue(name, bucket, *levels);
  queue.is_recalled = recall_queue(name, bucket, &queue.known);
  TimestampTz started = queue.is_recalled ? 0 : wall_now();
  int64 pages = pages_read();
  bool is_left = true;
  int opened = 0;
  if (find_places(&queue, levels, table->relation, table->snapshot, &budget->counts)) {
    int before = queue.taken;
    is_left = open_waiting(table, &queue, budget);
    if (queue.known.count <= kRememberedPlaces &&
        (queue.is_recalled || pages_read() - pages > kManyPages))
      remember_queue(name, bucket, generation, started, queue.known);
    else
      forget_queue(name, bucket);
    opened = queue.taken - before;
  }
  if (levels->only_swaps) return;
  if (levels->is_limited) count_opened(levels, opened, &budget->counts);
  if (is_left && is_blocked(queue, *levels) && !blocks_turn(*levels, budget)) {
    wait_for_level(*levels, bucket);
    budget->blocking_groups |= UINT64CONST(1) << level_group(levels->level[levels->blocker].hash);
  }
}

// Promotes one queue. A promotion that changes nothing keeps no lock, so that one transaction may
// check any number of queues.
void promote_queue(Datum name, int bucket, PromotionBudget* budget) {
  Levels levels = levels_of(name);
  if (!budget->turn && join_known_ring(levels, bucket)) return;
  uint64 generation = remembered_generation(bucket);
  if (!lock_queue(budget, bucket, &levels)) {
    unlock_levels(&levels, &budget->counts);
    come_back(budget, bucket, true);
    if (budget->turn) budget->turn->is_behind = keeps_turn(levels, *budget->turn);
    budget->met_lock = true;
    return;
  }
  // In a turn the queue may open no more jobs than are left of the turn.
  int places_left = budget->places_left;
  int beyond_turn = budget->turn ? Max(places_left - budget->turn->left, 0) : 0;
  budget->places_left -= beyond_turn;
  if (!levels.awaits_turn || levels.only_swaps)
    promote_locked(name, bucket, generation, &levels, budget);
  budget->places_left += beyond_turn;
  int opened = places_left - budget->places_left;
  if (budget->turn) budget->turn->left -= opened;
  if (opened == 0 && !levels.has_changed)
    unlock_levels(&levels, &budget->counts);
  else
    note_promoted(levels.level[levels.count - 1].hash);
}

// True when a promotion would change the queue, judged without the queue's lock.
bool wants_promotion(const JobScan& scan, Datum name, int bucket, LevelCounts* counts) {
  Levels levels = levels_of(name);
  read_levels(&levels, scan.snapshot);
  Queue queue = read_queue(name, bucket, levels);
  bool due = true;
  bool wanted = find_places(&queue, &levels, scan.job, scan.snapshot, counts) &&
                would_open(scan.job, scan.snapshot, queue, &due);
  if (due && !wanted && is_blocked(queue, levels)) wait_for_level(levels, bucket);
  return wanted;
}

// One step of a skip scan for each bucket that jobs wait for.
void mark_all_parents(DatabaseState* database) {
  JobScan waits;
  open_job_scan(&waits, &Catalog::job_waits_idx, 1);
  ScanKeyData key;
  for (int bucket = -1;;) {
    CHECK_FOR_INTERRUPTS();
    ScanKeyInit(&key, 1, BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(bucket));
    seek_keys(&waits.rows, &key);
    if (!next_row(&waits.rows)) break;
    bucket = parent_bucket(DatumGetInt64(value_of(waits.rows.row, kJobWaitsOn)));
    mark_queue(database, parent_mark(bucket));
  }
  close_job_scan(&waits);
}

// Lets jobs start, or ends jobs, after the end of the parents that the jobs wait for. The function
// in sql/flow/wait_for_parents.sql decides.
void resolve_waits(int bucket, PromotionBudget* budget) {
  static SavedPlan query = {"SELECT pulse_internal.resolve_waits($1)", 1, {INT4OID}, nullptr};
  NullableDatum argument = {Int32GetDatum(bucket), false};
  if (!DatumGetBool(value_of_query(&query, &argument).value)) return;
  return_promotion_mark(parent_mark(bucket));
  budget->more = true;
}

// One scan serves all queue buckets: the names come from index entries, whatever rows the snapshot
// shows.
IndexLookup* names_of_queues(PromotionBudget* budget) {
  if (!budget->names.job) open_job_scan(&budget->names, &Catalog::job_parked_idx, 2);
  return &budget->names.rows;
}

void close_tables(PromotionBudget* budget) {
  if (budget->table.relation) close_job_table(&budget->table);
  if (budget->names.job) close_job_scan(&budget->names);
}

void promote_queues_of_bucket(int bucket, PromotionBudget* budget) {
  Datum name = CStringGetTextDatum("");
  int at = bucket;
  while (next_queue(names_of_queues(budget), &at, &name, true)) {
    CHECK_FOR_INTERRUPTS();
    if (budget->places_left <= 0 && (budget->more || !budget->lets_join)) {
      come_back(budget, bucket, false);
      budget->more = true;
      break;
    }
    promote_queue(name, bucket, budget);
  }
}

// Marks the queue if a promotion would change the queue. Without shared memory, promotes the queue
// at once. True in either case.
bool mark_if_promotable(DatabaseState* database, const JobScan& scan, Datum name, int bucket,
                        LevelCounts* counts) {
  if (!wants_promotion(scan, name, bucket, counts)) return false;
  forget_queue(name, bucket);
  PromotionBudget unbounded_budget = {};
  unbounded_budget.places_left = kFallenDueAtOnce;
  if (database) {
    mark_queue(database, bucket);
  } else {
    promote_queue(name, bucket, &unbounded_budget);
    close_tables(&unbounded_budget);
    store_readings(unbounded_budget.counts.known);
  }
  return true;
}

// Promotes in turn the queues that wait for a level with a freed place, until the level blocks a
// queue again.
void promote_waiting(int group, PromotionBudget* budget, int* candidates_left) {
  WaitWalk walk = begin_wait_walk(group);
  int bucket;
  while (take_wait(&walk, &bucket)) {
    if (budget->places_left <= 0 || --*candidates_left < 0) {
      put_wait_back(walk, bucket);
      return return_freed_level(group);
    }
    note_wait_taken(bucket);
    budget->blocking_groups = 0;
    budget->met_lock = false;
    promote_queues_of_bucket(bucket, budget);
    if (budget->met_lock) return return_freed_level(group);
    if (((budget->blocking_groups >> group) & 1) && waits_for_one_level(group)) return;
  }
  end_wait_walk(group);
}

void promote_in_turn(Datum name, int bucket, TurnBudget* budget) {
  promote_queue(name, bucket, static_cast<PromotionBudget*>(budget));
}

// Walks each ring once. Each call begins with a different ring, so that no ring takes all the
// places left.
void promote_in_turns(PromotionBudget* budget) {
  static uint32 first = 0;
  first++;
  for (uint32 i = 0; i < kFairRings && budget->places_left > 0; i++)
    take_turns(static_cast<int>((first + i) % kFairRings), budget, promote_in_turn);
}

// How many of the places left are kept for fair levels while other queues have queue marks. If only
// one job may be opened, every second call keeps the place for fair levels.
int places_of_rings(int places_left) {
  static bool is_odd = false;
  is_odd = !is_odd;
  return any_ring_announced() ? (places_left + is_odd) / 2 : 0;
}

// Takes one promotion mark at a time, so that the queue mark of an unchecked queue stays set.
void promote_marks(PromotionBudget* budget, int max_marks) {
  for (int checked_count = 0; checked_count < max_marks; checked_count++) {
    int bucket;
    if (budget->places_left <= 0 && (budget->more || !budget->lets_join)) return;
    if (!take_promotion_mark(&bucket)) return;
    if (bucket >= parent_mark(0))
      resolve_waits(bucket - parent_mark(0), budget);
    else
      promote_queues_of_bucket(bucket, budget);
  }
}

// Locks the tables before the promotion takes promotion marks. A claim that waits behind a DBA's
// lock would otherwise hold cleared queue marks, and verify() would report the queues as stranded.
void lock_tables() {
  LockRelationOid(catalog()->job, RowExclusiveLock);
  if (OidIsValid(catalog()->dependency)) LockRelationOid(catalog()->dependency, RowExclusiveLock);
}

}  // namespace

Promotion promote_marked(int places_left, int max_marks, KnownLevel** known, PlacedJobs* placed) {
  PromotionBudget budget = {};
  budget.counts.unshown = unshown_places(placed);
  lock_tables();
  unblock_rings();
  budget.pauses = kMaxPauses;
  int kept = places_of_rings(places_left);
  budget.places_left = places_left - kept;
  int group;
  for (int left = max_marks; left > 0 && budget.places_left > 0 && take_freed_level(&group);)
    promote_waiting(group, &budget, &left);
  // Queues that have just got a job to start join their rings before any turn.
  budget.lets_join = kept > 0;
  promote_marks(&budget, kept > 0 ? kMaxJoins : max_marks);
  budget.lets_join = false;
  budget.places_left += kept;
  promote_in_turns(&budget);
  if (kept > 0) promote_marks(&budget, max_marks);
  close_tables(&budget);
  budget.more |= promotion_marks_remain() || (budget.places_left <= 0 && any_ring_announced());
  *known = budget.counts.known;
  return {budget.more, budget.busy};
}

void mark_queues_fallen_due() {
  DatabaseState* database = this_database();
  TimestampTz now = wall_now();
  if (!database || pg_atomic_read_u64(&database->parked_due) > static_cast<uint64>(now)) return;
  FallenDueScan fallen_due = begin_fallen_due_scan(database);
  free_dry_levels(database, now);
  JobScan scan;
  open_job_scan(&scan, &Catalog::job_parked_due_idx, 1);
  ScanKeyData key;
  ScanKeyInit(&key, 1, BTGreaterStrategyNumber, F_TIMESTAMPTZ_GT,
              TimestampTzGetDatum(fallen_due.seen_until));
  seek_keys(&scan.rows, &key);
  int marked = 0;
  while (next_row(&scan.rows)) {
    CHECK_FOR_INTERRUPTS();
    TimestampTz run_at = DatumGetTimestampTz(value_of(scan.rows.row, kJobRunAt));
    // At the limit the remaining rows are left to the next scan, which is due at once.
    if (run_at > now || (marked >= kFallenDueAtOnce && run_at > fallen_due.seen_until)) {
      lower_due(&database->parked_due, run_at);
      break;
    }
    fallen_due.seen_until = run_at;
    marked++;
    mark_queue(database, queue_bucket(DatumGetTextPP(value_of(scan.rows.row, kJobQueueName))));
  }
  end_fallen_due_scan(database, fallen_due);
  close_job_scan(&scan);
}

Promotion continue_first_check() {
  // One claim at a time checks: two claims would check the same queues.
  if (!try_advisory_lock(LockKind::kFirstCheck, 0, ExclusiveLock)) return {false, true};
  reconcile_queues(kQueuesOfOneCheck);
  release_advisory_lock(LockKind::kFirstCheck, 0, ExclusiveLock);
  return {is_first_check_due(), false};
}

int reconcile_queues(int max_count, TimestampTz ends) {
  DatabaseState* database = this_database();
  // Without shared memory a call promotes queues, and keeps the locks of no more than a thousand.
  static pg_atomic_uint32 own_next;
  pg_atomic_uint32* next = database ? &database->next_bucket : &own_next;
  bool is_bounded = !database || max_count > 0 || ends != DT_NOEND;
  if (database && begin_queue_check(database) && catalog()->has_index_lanes)
    mark_all_parents(database);
  JobScan parked;
  open_job_scan(&parked, &Catalog::job_parked_idx, 2);
  MemoryContext step =
      AllocSetContextCreate(CurrentMemoryContext, "pulse reconcile", ALLOCSET_DEFAULT_SIZES);
  LevelCounts counts = {};
  Datum name = CStringGetTextDatum("");
  int bucket = is_bounded ? static_cast<int>(pg_atomic_read_u32(next)) : 0;
  int marked = 0;
  int last_bucket = bucket;
  for (int checked_count = 0;; checked_count++) {
    CHECK_FOR_INTERRUPTS();
    bool is_over = (max_count > 0 && checked_count >= max_count) || GetCurrentTimestamp() >= ends;
    if (!database) is_over = marked >= kQueuesOfOneCheck;
    // The next call begins with a whole queue bucket, so a call ends between two queue buckets.
    if (is_bounded && bucket != last_bucket && is_over) break;
    last_bucket = bucket;
    if (!next_queue(&parked.rows, &bucket, &name, false)) {
      bucket = 0;
      if (database) end_first_check(database);
      break;
    }
    MemoryContext old = MemoryContextSwitchTo(step);
    marked += mark_if_promotable(database, parked, name, bucket, &counts);
    MemoryContextSwitchTo(old);
    if (checked_count % kQueuesOfOneCheck != 0) continue;
    counts = {};
    MemoryContextReset(step);
  }
  pg_atomic_write_u32(next, static_cast<uint32>(bucket));
  MemoryContextDelete(step);
  close_job_scan(&parked);
  return marked;
}

}  // namespace pulse

// The function of 0.1.0 has one argument.
PULSE_FUNCTION(pulse_reconcile_queues) {
  TimestampTz ends = PG_NARGS() > 1 ? PG_GETARG_TIMESTAMPTZ(1) : DT_NOEND;
  PG_RETURN_INT32(pulse::reconcile_queues(PG_GETARG_INT32(0), ends));
}

PULSE_FUNCTION(pulse_promote_marked) {
  pulse::mark_queues_fallen_due();
  pulse::KnownLevel* known;
  bool more = pulse::promote_marked(PG_GETARG_INT32(0), PG_GETARG_INT32(0), &known).more;
  pulse::store_readings(known);
  PG_RETURN_BOOL(more);
}
