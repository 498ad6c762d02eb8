#include "wake/pending_wakes.hpp"

#include "server/advisory_lock.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "wake/prepared_notes.hpp"
#include "wake/promotion_marks.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kMaxWorkers = 16;

// Lives for one transaction. A rolled-back savepoint keeps its entries: an extra wake-up is
// harmless, a missing wake-up is not.
struct Pending {
  bool any;
  // Jobs to wake workers for at commit.
  JobCounts jobs;
  // The earliest run_at of the jobs made ready, also of future jobs: no low-water mark may lie
  // above this moment.
  EarliestRunAt ready;
  FirstParked parked;
  // Jobs that this transaction claimed, and where claims raised low-water marks.
  JobCounts claimed;
  EarliestRunAt passed;
  // The promotion marks that the commit sets; own_promotion_marks: those of them that this
  // transaction has not taken itself.
  PromotionMarks promotion_marks;
  PromotionMarks own_promotion_marks;
  UnpromotedQueues unpromoted;  // the queues of the queue marks in `promotion_marks`
  // The innermost subtransaction that last took promotion marks, or queues that wait for levels.
  SubTransactionId takes_in;
  // The promotion marks taken from shared memory; an abort sets these promotion marks again.
  PromotionMarks taken;
  // Promotion marks to set again at the end, committed or not.
  PromotionMarks returned;
  // Level groups in which this transaction frees a place, level groups and rings taken from shared
  // memory, and level groups to return at the end.
  uint64 freed_levels;
  uint64 taken_levels;
  uint64 returned_levels;
  bool undone;  // promotions of a savepoint were rolled back
  // Due times to publish at commit; 0: none.
  EarliestRunAt due;
  TimestampTz parked_due;
  TimestampTz sweep_due;
  bool all_waiters, checks_anew;
  bool beyond_places;  // a returned queue mark is of a queue that this transaction could promote
  // A sweep runs in this transaction, begun in that subtransaction, and answers the request.
  bool sweeps;
  SubTransactionId sweeps_in;
  // Workers that must send a heartbeat.
  int workers;
  int64 worker[kMaxWorkers];
};

Pending pending;

void wake_after_commit(DatabaseState* database) {
  pending.unpromoted.narrow(&pending.promotion_marks);
  set_promotion_marks(database, pending.promotion_marks);
  set_promotion_marks(database, pending.returned);
  publish_freed_levels(database, pending.freed_levels);
  set_freed_levels(database, pending.returned_levels);
  if (pending.checks_anew) pg_atomic_write_u32(&database->first_check, kCheckIsDue);
  // A worker may be between its claim and its wait; then the worker notices the generation.
  if (pending.promotion_marks.any || pending.undone || pending.beyond_places ||
      pending.all_waiters || pending.workers > 0)
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  publish_due_times(database, pending.due, pending.parked_due, pending.sweep_due);
  // A waiter takes the queue marks that other sessions found busy meanwhile.
  bool wake_any = pending.promotion_marks.any || pending.taken.any;
  if (pending.jobs.bits || wake_any) wake_waiters(database, pending.jobs, wake_any);
  for (int i = 0; i < pending.workers; i++) wake_worker(pending.worker[i]);
  if (pending.all_waiters) wake_all_waiters();
}

void wake_after_abort(DatabaseState* database) {
  if (pending.sweeps) request_sweep(database, wall_now());
  uint64 levels = pending.taken_levels | pending.returned_levels;
  bool returns_marks = pending.taken.any || pending.returned.any || levels;
  if (returns_marks) {
    set_promotion_marks(database, pending.taken);
    set_promotion_marks(database, pending.returned);
    set_freed_levels(database, levels);
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  }
  // Waiters that skipped the rows of the undone claim must claim again.
  if (pending.claimed.bits || returns_marks) wake_waiters(database, pending.claimed, returns_marks);
}

void forget() {
  if (pending.any) memset(&pending, 0, sizeof(pending));
}

// True when shared memory exists. Finds the database now, because the callback must not.
bool begin_pending() {
  if (!this_database()) return false;
  pending.any = true;
  return true;
}

void lower_time(TimestampTz* earliest, TimestampTz at) {
  if (!*earliest || at < *earliest) *earliest = at;
}

}  // namespace

void note_ready(const text* identifier, TimestampTz run_at) {
  if (!begin_pending()) return;
  int bit = task_bit(identifier);
  pending.ready.lower(bit, run_at);
  if (run_at > wall_now())
    pending.due.lower(bit, run_at);
  else
    pending.jobs.add(bit);
}

const EarliestRunAt& made_ready() { return pending.ready; }

TimestampTz own_ready_from(int bit) {
  return pending.ready.has(bit) ? pending.ready.at[bit] : PG_INT64_MAX;
}

const EarliestRunAt& gone_past() { return pending.passed; }

void note_claimed(int bit) {
  if (begin_pending()) pending.claimed.add(bit);
}

void note_passed(int bit, TimestampTz run_at) {
  if (begin_pending()) pending.passed.lower(bit, run_at);
}

void note_more(int bit) {
  if (begin_pending()) pending.jobs.add(bit);
}

const FirstParked& made_parked() { return pending.parked; }

void note_parked(int queue_bucket, ParkedKey key) {
  if (begin_pending()) pending.parked.lower(parked_group(queue_bucket), key);
}

void note_job(const text* identifier, const text* queue_name, TimestampTz run_at, int16 priority) {
  if (!queue_name) return note_ready(identifier, run_at);
  // The commit sets the queue mark for a future job too, because the job may be due by then.
  uint64 hash = fnv1a(queue_name);
  note_queue(hash);
  note_parked(bucket_of_hash(hash), {priority, run_at});
  if (run_at > wall_now())
    note_parked_due(run_at);
  else
    note_more(task_bit(identifier));
}

static void note_promotion_mark(int bucket) {
  pending.promotion_marks.add(bucket);
  pending.own_promotion_marks.add(bucket);
}

void note_queue(uint64 hash) {
  if (!begin_pending()) return;
  note_promotion_mark(bucket_of_hash(hash));
  pending.unpromoted.add(hash);
}

void note_promoted(uint64 hash) {
  Assert(holds_advisory_lock(LockKind::kQueue, hash, ExclusiveLock));
  pending.unpromoted.remove(hash);
}

bool note_parent(int64 job_id) {
  if (!begin_pending()) return false;
  note_promotion_mark(parent_mark(parent_bucket(job_id)));
  return true;
}

void note_end_of_parent(DatabaseState* database, int64 job_id) {
  int bucket = parent_bucket(job_id);
  uint64 awaited = pg_atomic_read_u64(&database->awaited_parents[bucket / 64]) |
                   pending.promotion_marks.words[kQueueWords + bucket / 64];
  if ((awaited >> (bucket % 64)) & 1) (void)note_parent(job_id);
}

void note_ended_parents(int word, uint64 buckets) {
  pending.any = pending.promotion_marks.any = true;
  pending.promotion_marks.words[kQueueWords + word] |= buckets;
}

void note_place_freed(const QueuePlace& place) {
  if (!begin_pending()) return;
  note_queue(place.hash);
  pending.freed_levels |= place.level_groups;
}

void note_parked_due(TimestampTz run_at) {
  if (begin_pending()) lower_time(&pending.parked_due, run_at);
}

void note_sweep(TimestampTz at) {
  if (begin_pending()) lower_time(&pending.sweep_due, at);
}

// The next call begins to search behind the last promotion mark that a call took, so that no queue
// waits behind a queue whose jobs end again and again. A call that finds none begins anew.
void search_marks_from(int bucket) {
  pg_atomic_write_u32(&this_database()->next_promotion_mark, static_cast<uint32>(bucket));
}

// Takes a promotion mark. The commit still publishes a promotion mark that this transaction sets
// itself.
static bool take_mark(DatabaseState* database, int bucket) {
  int word = bucket / 64;
  uint64 mask = UINT64CONST(1) << (bucket % 64);
  bool is_own = pending.own_promotion_marks.words[word] & mask;
  pending.own_promotion_marks.words[word] &= ~mask;
  // The call clears the promotion mark before the promotion, so a promotion mark set meanwhile
  // stays.
  bool is_taken = pg_atomic_fetch_and_u64(&database->promotion_marks[word], ~mask) & mask;
  pending.any |= is_taken;
  if (is_taken) pending.taken.add(bucket);
  return is_own || is_taken;
}

bool take_promotion_mark(int* bucket) {
  pending.takes_in = GetCurrentSubTransactionId();
  DatabaseState* database = this_database();
  if (!database) return false;
  // The first word comes once more at the end.
  const int first = static_cast<int>(pg_atomic_read_u32(&database->next_promotion_mark));
  const uint64 first_buckets = PG_UINT64_MAX << (first % 64);
  for (int i = 0; i <= kPromotionMarkWords; i++) {
    int at = (first / 64 + i) % kPromotionMarkWords;
    uint64 word =
        pg_atomic_read_u64(&database->promotion_marks[at]) | pending.own_promotion_marks.words[at];
    if (i == 0) word &= first_buckets;
    for (; word; word &= word - 1) {
      *bucket = at * 64 + __builtin_ctzll(word);
      if (!take_mark(database, *bucket)) continue;
      search_marks_from((*bucket + 1) % (kPromotionMarkWords * 64));
      return true;
    }
  }
  search_marks_from(0);
  return false;
}

bool promotion_marks_remain() {
  DatabaseState* database = this_database();
  for (int i = 0; database && i < kPromotionMarkWords; i++)
    if (pending.own_promotion_marks.words[i] || pg_atomic_read_u64(&database->promotion_marks[i]))
      return true;
  return database && (pg_atomic_read_u64(&database->freed_levels) & kAllLevelGroups);
}

bool take_freed_level(int* group) {
  DatabaseState* database = this_database();
  uint64 freed = database ? pg_atomic_read_u64(&database->freed_levels) & kAllLevelGroups : 0;
  for (; freed; freed &= freed - 1) {
    uint64 mask = freed & -freed;
    if (!(pg_atomic_fetch_and_u64(&database->freed_levels, ~mask) & mask)) continue;
    pending.any = true;
    pending.taken_levels |= mask;
    *group = __builtin_ctzll(mask);
    return true;
  }
  return false;
}

void return_freed_level(int group) {
  pending.any = true;
  pending.returned_levels |= UINT64CONST(1) << group;
}

void note_wait_taken(int bucket, uint64 rings) {
  pending.any = true;
  pending.takes_in = GetCurrentSubTransactionId();
  pending.taken_levels |= rings;
  pending.taken.add(bucket);
}

void return_promotion_mark(int bucket, bool is_beyond_places) {
  pending.any = true;
  pending.returned.add(bucket);
  pending.beyond_places |= is_beyond_places;
}

void wake_for_commit() {
  DatabaseState* database = this_database_if_known();
  if (pending.any && database) wake_after_commit(database);
  forget();
}

bool has_notes() { return pending.any; }

void copy_notes(PreparedNotes* notes) {
  pending.unpromoted.narrow(&pending.promotion_marks);
  notes->ready = pending.ready;
  notes->parked = pending.parked;
  notes->promotion_marks = pending.promotion_marks;
  notes->freed_levels = pending.freed_levels;
  notes->jobs = pending.jobs;
  notes->due = pending.due;
  notes->parked_due = pending.parked_due;
  notes->sweep_due = pending.sweep_due;
  notes->checks_anew = pending.checks_anew;
}

// Also runs at PREPARE.
void wake_for_abort() {
  DatabaseState* database = this_database_if_known();
  if (pending.any && database) wake_after_abort(database);
  forget();
}

// Claims count as undone, and so do promotions since the savepoint: extra wake-ups are harmless.
void wake_for_undone_savepoint(SubTransactionId undone) {
  if (!pending.any) return;
  DatabaseState* database = this_database_if_known();
  if (database) {
    // A subtransaction with a higher id began within the undone one.
    if (pending.sweeps && pending.sweeps_in >= undone) request_sweep(database, wall_now());
    if (pending.claimed.bits) wake_waiters(database, pending.claimed, false);
    set_freed_levels(database, pending.taken_levels);
  }
  pending.unpromoted.count = UnpromotedQueues::kUnknown;  // the undone work may contain promotions
  if (pending.takes_in < undone) return;
  // This transaction checks the queues of all taken queue marks again, including its own.
  pending.own_promotion_marks.add_all(pending.promotion_marks);
  pending.own_promotion_marks.add_all(pending.taken);
  if (!pending.taken.any && !pending.taken_levels) return;
  pending.returned.add_all(pending.taken);
  pending.returned.any = pending.undone = true;
}

void note_level_settings(bool of_members) {
  if (!begin_pending()) return;
  pending.freed_levels = kAllLevelGroups;
  pending.checks_anew |= of_members;
}

}  // namespace pulse

// pulse_internal.note_job(identifier, queue_name, run_at): see note_job().
PULSE_FUNCTION(pulse_note_job) {
  pulse::require_arguments(fcinfo, {0, 2});
  text* queue_name = PG_ARGISNULL(1) ? nullptr : PG_GETARG_TEXT_PP(1);
  pulse::note_job(PG_GETARG_TEXT_PP(0), queue_name, PG_GETARG_TIMESTAMPTZ(2));
  if (queue_name) pulse::note_place_freed(pulse::place_in_queue(queue_name));
  PG_RETURN_BOOL(true);
}

// pulse_internal.note_queue(queue_name): any job of the queue may be parked now.
PULSE_FUNCTION(pulse_note_queue) {
  pulse::QueuePlace place = pulse::place_in_queue(PG_GETARG_TEXT_PP(0));
  pulse::note_place_freed(place);
  pulse::note_parked(place.bucket, {PG_INT16_MIN, PG_INT64_MIN});
  PG_RETURN_BOOL(true);
}

// pulse_internal.note_worker(worker_id): this worker must send a heartbeat.
PULSE_FUNCTION(pulse_note_worker) {
  using pulse::pending;
  // Workers beyond the limit learn the news at their next heartbeat.
  if (pulse::begin_pending() && pending.workers < pulse::kMaxWorkers)
    pending.worker[pending.workers++] = PG_GETARG_INT64(0);
  PG_RETURN_BOOL(true);
}

// pulse_internal.note_all_waiters(): every waiter must claim again.
PULSE_FUNCTION(pulse_note_everybody) {
  if (pulse::begin_pending()) pulse::pending.all_waiters = true;
  PG_RETURN_BOOL(true);
}

// pulse_internal.start_sweep(): this transaction sweeps, as was requested; an abort asks anew.
PULSE_FUNCTION(pulse_start_sweep) {
  if (pulse::begin_pending()) {
    // Cleared before the sweep reads anything: a session that ends later makes a new request.
    pg_atomic_write_u64(&pulse::this_database()->sweep_due, pulse::kNever);
    pulse::pending.sweeps = true;
    pulse::pending.sweeps_in = GetCurrentSubTransactionId();
  }
  PG_RETURN_BOOL(true);
}

// pulse_internal.note_sweep_due(at): a sweep is requested at that time.
PULSE_FUNCTION(pulse_note_sweep_due) {
  pulse::note_sweep(PG_GETARG_TIMESTAMPTZ(0));
  PG_RETURN_BOOL(true);
}

// pulse_internal.note_parent(job_id): see note_parent().
PULSE_FUNCTION(pulse_note_parent) { PG_RETURN_BOOL(pulse::note_parent(PG_GETARG_INT64(0))); }
