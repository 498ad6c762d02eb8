#include "queue/promote.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "limit/queue_marks.hpp"
#include "parent/resolve.hpp"
#include "queue/parked_jobs.hpp"
#include "queue/places.hpp"
#include "queue/sources.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/promotion_marks.hpp"

namespace pulse {
namespace {

constexpr int kFallenDueAtOnce = 1000;
// A promotion that reads more pages remembers the places and the front of the queue.
constexpr int kManyPages = 64;
constexpr int kQueuesOfOneCheck = 1000;
// How many promotion marks a call takes while queues only join their rings.
constexpr int kMaxJoins = 256;
// A claim after a start checks a thousand queues instead.
constexpr int kFreeChecks = 250;
// Another claim walks a ring for some milliseconds, unless the claim's process is stopped.
constexpr int kMaxPauses = 5;

// Opens jobs for the places left of an admitted queue. `generation` precedes the snapshot.
void open_places(const Admission& admission, uint64 generation, PromotionBudget* budget,
                 Outcome* outcome) {
  outcome->lacks_places = admission.is_paused;
  if (admission.is_paused) return;
  const JobTable& table = budget->context.table;
  TimestampTz started = wall_now();
  int64 pages = pages_read();
  Queue queue = find_places(admission, table.relation, table.snapshot, budget->placed, true);
  int before = queue.taken;
  int starts_left = Min(budget->places_left, admission.starts_left);
  OpeningWalk opening = opening_walk(&budget->context.table, budget->placed, starts_left);
  bool is_left = walk_parked(&queue, &opening);
  if (!queue.is_recalled && pages_read() - pages <= kManyPages) queue.known.count = kDoNotRemember;
  const Level& own = admission.levels.level[admission.levels.count - 1];
  remember_queue(own.hash, generation, queue.is_recalled ? 0 : started, queue.known);
  outcome->has_more = opening.has_more;
  outcome->is_busy = opening.is_busy;
  outcome->places = queue.taken - before;
  outcome->starts = starts_left - opening.starts_left;
  outcome->lacks_places = is_left && lacks_places(queue);
  budget->places_left -= outcome->starts;
}

// Promotes one queue.
Outcome promote_queue(const Candidate& queue, PromotionBudget* budget) {
  Outcome outcome = {};
  outcome.blocking_group = -1;
  uint64 generation = remembered_generation(queue.bucket);
  Admission admission = admit(queue, &budget->context);
  outcome.is_busy = outcome.met_lock = admission.status == AdmissionStatus::kBusy;
  if (admission.status == AdmissionStatus::kAdmitted) {
    open_places(admission, generation, budget, &outcome);
    report_opened(&admission, &outcome, &budget->context);
  }
  budget->busy |= outcome.is_busy;
  return outcome;
}

void promote_from(QueueSource* source, PromotionBudget* budget) {
  Candidate queue;
  while (may_promote(*budget) && source->next(source, &queue)) {
    CHECK_FOR_INTERRUPTS();
    source->answer(source, queue, promote_queue(queue, budget));
  }
}

// A check of queues under the snapshot of one scan.
struct QueueCheck {
  FreedPlaces freed;  // before the snapshot
  JobScan parked;
  LevelCounts counts;
};

// True when a promotion would change the queue, judged without the queue's lock.
bool wants_promotion(QueueCheck* check, const Candidate& candidate) {
  const JobScan& scan = check->parked;
  Admission admission =
      foresee_admission(candidate, scan.job, scan.snapshot, &check->counts, check->freed);
  if (admission.is_paused) {
    wait_where_blocked(admission);
    return false;
  }
  Queue queue = find_places(admission, scan.job, scan.snapshot, nullptr, false);
  bool due;
  bool wanted = would_open(scan.job, scan.snapshot, &queue, &due);
  if (due && !wanted && lacks_places(queue)) wait_where_blocked(admission);
  return wanted;
}

void close_tables(PromotionBudget* budget) {
  if (budget->context.table.relation) close_job_table(&budget->context.table);
  if (budget->names.job) close_job_scan(&budget->names);
}

// Sets the queue mark if a promotion would change the queue. Without shared memory, promotes the
// queue at once. True in either case.
bool mark_if_promotable(DatabaseState* database, QueueCheck* check, const Candidate& queue) {
  if (!wants_promotion(check, queue)) return false;
  forget_queue(queue.name);
  PromotionBudget unbounded_budget = {};
  unbounded_budget.places_left = kFallenDueAtOnce;
  if (database) {
    set_promotion_mark(database, queue.bucket);
  } else {
    keep_queue_mark(&unbounded_budget, queue, promote_queue(queue, &unbounded_budget));
    close_tables(&unbounded_budget);
    store_readings(unbounded_budget.context.counts.known);
  }
  return true;
}

// Promotes one after the other the queues that wait for a level with a freed place.
void promote_freed_levels(PromotionBudget* budget, int max_buckets) {
  FreedLevelSource levels = begin_freed_levels(budget, max_buckets);
  promote_from(&levels, budget);
  end_freed_levels(&levels);
}

void promote_marks(PromotionBudget* budget, int max_marks) {
  MarkSource marks = begin_marks(budget, max_marks);
  promote_from(&marks, budget);
  end_marks(&marks);
}

void promote_ring(int number, PromotionBudget* budget) {
  RingSource ring;
  if (!begin_turns(&ring, number, &budget->pauses, &budget->busy)) return;
  budget->context.turn = &ring.turn;
  promote_from(&ring, budget);
  budget->context.turn = nullptr;
  budget->more |= end_turns(&ring);
}

// Walks each ring once, beginning with the ring of that number, so that over several calls no ring
// takes all the places left.
void promote_in_turns(PromotionBudget* budget, uint32 first) {
  for (uint32 i = 0; i < kFairRings && budget->places_left > 0; i++)
    promote_ring(static_cast<int>((first + i) % kFairRings), budget);
}

// The number of this call among those of all sessions that find a ring with something to start.
uint32 ring_call() { return pg_atomic_fetch_add_u32(&this_database()->ring_calls, 1); }

// Locks the tables before the promotion takes promotion marks. A claim that waits behind a DBA's
// lock would otherwise hold cleared queue marks, and verify() would report the queues as stranded.
void lock_tables() {
  LockRelationOid(catalog()->job, RowExclusiveLock);
  if (OidIsValid(catalog()->dependency)) LockRelationOid(catalog()->dependency, RowExclusiveLock);
}

}  // namespace

Promotion promote_marked(int places_left, int max_marks, KnownLevel** known, PlacedJobs* placed) {
  PromotionBudget budget = {};
  budget.placed = placed;
  budget.context.counts.unshown = unshown_places(placed);
  lock_tables();
  unblock_rings();
  budget.pauses = kMaxPauses;
  budget.free_checks = placed && !is_first_check_due() ? kFreeChecks : 0;
  // Fair levels keep half of the places while other queues have queue marks. If only one job may be
  // opened, every second call keeps the place.
  bool has_ring = any_ring_announced();
  uint32 call = has_ring ? ring_call() : 0;
  int kept = has_ring ? (places_left + (call % 2 == 0)) / 2 : 0;
  budget.places_left = places_left - kept;
  promote_freed_levels(&budget, max_marks);
  // Queues that have just got a job to start join their rings before any turn.
  budget.lets_join = kept > 0;
  promote_marks(&budget, kept > 0 ? kMaxJoins : max_marks);
  budget.lets_join = false;
  budget.places_left += kept;
  promote_in_turns(&budget, call / 2);
  if (kept > 0) promote_marks(&budget, max_marks);
  close_tables(&budget);
  // Behind a level that another transaction holds, further queues are as busy: the caller pauses.
  bool is_in_vain = budget.busy && budget.places_left == places_left;
  budget.more |= (promotion_marks_remain() && !is_in_vain) ||
                 (budget.places_left <= 0 && any_ring_announced());
  *known = budget.context.counts.known;
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
    set_promotion_mark(database,
                       queue_bucket(DatumGetTextPP(value_of(scan.rows.row, kJobQueueName))));
  }
  end_fallen_due_scan(database, fallen_due);
  close_job_scan(&scan);
}

Promotion continue_first_check() {
  bool is_busy = reconcile_queues(kQueuesOfOneCheck) < 0;
  return {!is_busy && is_first_check_due(), is_busy};
}

int reconcile_queues(int max_count, TimestampTz ends) {
  DatabaseState* database = this_database();
  // One call at a time checks: a call that began earlier, under an older snapshot, would move or
  // end the check of another call.
  if (!try_advisory_lock(LockKind::kQueueCheck, 0, ExclusiveLock)) return -1;
  // Without shared memory a call promotes queues, and keeps the locks of no more than a thousand.
  static pg_atomic_uint32 own_next;
  pg_atomic_uint32* next = database ? &database->next_bucket : &own_next;
  bool is_bounded = !database || max_count > 0 || ends != DT_NOEND;
  if (database && begin_queue_check(database) && catalog()->has_index_lanes)
    mark_all_parents(database);
  QueueCheck check = {freed_places(), {}, {}};
  open_job_scan(&check.parked, &Catalog::job_parked_idx, 2);
  MemoryContext step =
      AllocSetContextCreate(CurrentMemoryContext, "pulse reconcile", ALLOCSET_DEFAULT_SIZES);
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
    if (!next_queue(&check.parked.rows, &bucket, &name, false)) {
      bucket = 0;
      if (database) end_first_check(database);
      break;
    }
    MemoryContext old = MemoryContextSwitchTo(step);
    marked += mark_if_promotable(database, &check, {name, bucket});
    MemoryContextSwitchTo(old);
    if (checked_count % kQueuesOfOneCheck != 0) continue;
    check.counts = {};
    MemoryContextReset(step);
  }
  pg_atomic_write_u32(next, static_cast<uint32>(bucket));
  MemoryContextDelete(step);
  close_job_scan(&check.parked);
  release_advisory_lock(LockKind::kQueueCheck, 0, ExclusiveLock);
  return marked;
}

}  // namespace pulse

// The function of 0.1.0 has one argument.
PULSE_FUNCTION(pulse_reconcile_queues) {
  TimestampTz ends = PG_NARGS() > 1 ? PG_GETARG_TIMESTAMPTZ(1) : DT_NOEND;
  PG_RETURN_INT32(Max(pulse::reconcile_queues(PG_GETARG_INT32(0), ends), 0));
}

PULSE_FUNCTION(pulse_promote_marked) {
  pulse::mark_queues_fallen_due();
  pulse::KnownLevel* known;
  bool more = pulse::promote_marked(PG_GETARG_INT32(0), PG_GETARG_INT32(0), &known).more;
  pulse::store_readings(known);
  PG_RETURN_BOOL(more);
}
