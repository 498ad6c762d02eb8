#include "wake/pending_wakes.hpp"

#include "server/clocks.hpp"
#include "wake/background_wake.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kMaxWorkers = 16;

// Lives for one transaction. A rolled-back savepoint keeps its entries: an extra wake-up is
// harmless, a missing one is not.
struct Pending {
  bool any;
  // Jobs to wake workers for at commit, per task bit.
  uint64 task_bits;
  uint32 jobs[kTaskBits];
  // The earliest run_at of the jobs made ready, also of future ones: marks must not be above it.
  EarliestRunAt ready;
  // Jobs that this transaction claimed, and where it raised marks.
  uint64 claimed_bits;
  uint32 claimed[kTaskBits];
  EarliestRunAt passed;
  // Queue marks to set at commit, and those of them that this transaction has not promoted itself.
  bool any_queue;
  uint64 queue_marks[kMarkWords];
  uint64 own_queue_marks[kMarkWords];
  // Queue marks taken from shared memory; an abort sets them again.
  bool any_taken;
  uint64 taken[kMarkWords];
  // Queue marks to set again at the end, committed or not.
  bool any_returned;
  bool undone;  // promotions of a savepoint were rolled back
  uint64 returned[kMarkWords];
  // Due times to publish at commit; 0: none.
  EarliestRunAt due;
  TimestampTz parked_due;
  TimestampTz sweep_due;
  bool all_waiters;
  // A sweep runs in this transaction, begun in that subtransaction, and answers the request.
  bool sweeps;
  SubTransactionId sweeps_in;
  // Workers that must call their heartbeat.
  int workers;
  int64 worker[kMaxWorkers];
};

Pending pending;

void set_queue_marks(DatabaseState* database, const uint64* marks) {
  for (int i = 0; i < kMarkWords; i++)
    if (marks[i]) pg_atomic_fetch_or_u64(&database->queue_marks[i], marks[i]);
}

void publish_due_times(DatabaseState* database) {
  uint64 lowered = 0;
  bool all = false;
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((pending.due.bits >> bit) & 1)
      if (lower_due(&database->next_due[bit], pending.due.at[bit]))
        lowered |= UINT64CONST(1) << bit;
  if (pending.parked_due && lower_due(&database->parked_due, pending.parked_due)) all = true;
  if (pending.sweep_due && lower_due(&database->sweep_due, pending.sweep_due)) {
    wake_background(database);
    all = true;
  }
  if (all)
    signal_waiters();
  else if (lowered)
    signal_timer_owners(lowered);
}

void wake_after_commit(DatabaseState* database) {
  if (pending.any_queue) set_queue_marks(database, pending.queue_marks);
  if (pending.any_returned) set_queue_marks(database, pending.returned);
  // A worker may be between its claim and its wait; the generation reaches it there.
  if (pending.any_queue || pending.undone || pending.all_waiters || pending.workers > 0)
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  publish_due_times(database);
  // A session that found a queue busy because of this transaction set the mark again: one waiter
  // takes it.
  bool wake_any = pending.any_queue || pending.any_taken;
  if (pending.task_bits || wake_any)
    wake_waiters(database, pending.jobs, pending.task_bits, wake_any);
  for (int i = 0; i < pending.workers; i++) wake_worker(pending.worker[i]);
  if (pending.all_waiters) wake_all_waiters();
}

void request_sweep(DatabaseState* database) {
  if (!lower_due(&database->sweep_due, wall_now())) return;
  wake_background(database);
  signal_waiters();
}

void wake_after_abort(DatabaseState* database) {
  if (pending.sweeps) request_sweep(database);
  bool marks = pending.any_taken || pending.any_returned;
  if (marks) {
    set_queue_marks(database, pending.taken);
    set_queue_marks(database, pending.returned);
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  }
  // Waiters that skipped the rows of the undone claim must claim again.
  if (pending.claimed_bits || marks)
    wake_waiters(database, pending.claimed, pending.claimed_bits, marks);
}

void forget() {
  if (pending.any) memset(&pending, 0, sizeof(pending));
}

// True when shared memory exists. Looks it up now, because the callback must not.
bool begin_pending() {
  if (!this_database()) return false;
  pending.any = true;
  return true;
}

void lower_earliest(EarliestRunAt* earliest, int bit, TimestampTz run_at) {
  uint64 mask = UINT64CONST(1) << bit;
  if (!(earliest->bits & mask) || run_at < earliest->at[bit]) earliest->at[bit] = run_at;
  earliest->bits |= mask;
}

}  // namespace

void note_ready(const char* identifier, int length, TimestampTz run_at) {
  if (!begin_pending()) return;
  int bit = task_bit(identifier, length);
  lower_earliest(&pending.ready, bit, run_at);
  if (run_at > wall_now()) {
    lower_earliest(&pending.due, bit, run_at);
    return;
  }
  note_more(bit);
}

const EarliestRunAt& made_ready() { return pending.ready; }

TimestampTz own_ready_from(int bit) {
  return (pending.ready.bits >> bit) & 1 ? pending.ready.at[bit] : PG_INT64_MAX;
}

const EarliestRunAt& gone_past() { return pending.passed; }

void note_claimed(int bit) {
  if (!begin_pending()) return;
  pending.claimed_bits |= UINT64CONST(1) << bit;
  pending.claimed[bit]++;
}

void note_passed(int bit, TimestampTz run_at) {
  if (begin_pending()) lower_earliest(&pending.passed, bit, run_at);
}

void note_more(int bit) {
  if (!begin_pending()) return;
  pending.task_bits |= UINT64CONST(1) << bit;
  pending.jobs[bit]++;
}

void note_job(const text* identifier, const text* queue_name, TimestampTz run_at) {
  const char* name = VARDATA_ANY(identifier);
  int length = VARSIZE_ANY_EXHDR(identifier);
  if (!queue_name) {
    note_ready(name, length, run_at);
    return;
  }
  // A future job also marks its queue, because it may be due when this transaction commits.
  note_queue_slot(queue_slot(queue_name));
  if (run_at > wall_now())
    note_parked_due(run_at);
  else
    note_more(task_bit(name, length));
}

void note_queue_slot(int slot) {
  if (!begin_pending()) return;
  pending.any_queue = true;
  pending.queue_marks[slot / 64] |= UINT64CONST(1) << (slot % 64);
  pending.own_queue_marks[slot / 64] |= UINT64CONST(1) << (slot % 64);
}

void note_parked_due(TimestampTz run_at) {
  if (!begin_pending()) return;
  if (!pending.parked_due || run_at < pending.parked_due) pending.parked_due = run_at;
}

void note_sweep_due(TimestampTz at) {
  if (!begin_pending()) return;
  if (!pending.sweep_due || at < pending.sweep_due) pending.sweep_due = at;
}

void note_all_waiters() {
  if (begin_pending()) pending.all_waiters = true;
}

void start_sweep() {
  if (!begin_pending()) return;
  // Cleared before the sweep reads anything: a session that ends later makes a new request.
  pg_atomic_write_u64(&this_database()->sweep_due, kNever);
  pending.sweeps = true;
  pending.sweeps_in = GetCurrentSubTransactionId();
}

void note_worker(int64 worker_id) {
  if (!begin_pending()) return;
  // Workers beyond the limit learn of it at their next heartbeat.
  if (pending.workers < kMaxWorkers) pending.worker[pending.workers++] = worker_id;
}

// Takes a mark set by this transaction itself. The commit still publishes it.
static bool take_own_queue_mark(int* slot) {
  for (int i = 0; pending.any_queue && i < kMarkWords; i++) {
    if (!pending.own_queue_marks[i]) continue;
    int bit = __builtin_ctzll(pending.own_queue_marks[i]);
    pending.own_queue_marks[i] &= ~(UINT64CONST(1) << bit);
    *slot = i * 64 + bit;
    return true;
  }
  return false;
}

bool take_queue_mark(int* slot) {
  if (take_own_queue_mark(slot)) return true;
  // Each call continues where the last one stopped, so that no mark waits behind busier ones.
  static int next_word = 0;
  DatabaseState* database = this_database();
  if (!database) return false;
  for (int i = 0; i < kMarkWords; i++) {
    int at = (next_word + i) % kMarkWords;
    uint64 word = pg_atomic_read_u64(&database->queue_marks[at]);
    while (word) {
      int bit = __builtin_ctzll(word);
      uint64 mask = UINT64CONST(1) << bit;
      word &= ~mask;
      // The mark is cleared before the promotion, so a mark set meanwhile stays.
      if (!(pg_atomic_fetch_and_u64(&database->queue_marks[at], ~mask) & mask)) continue;
      pending.any = pending.any_taken = true;
      pending.taken[at] |= mask;
      *slot = at * 64 + bit;
      next_word = at;
      return true;
    }
  }
  return false;
}

bool queue_marks_remain() {
  DatabaseState* database = this_database();
  for (int i = 0; database && i < kMarkWords; i++)
    if (pending.own_queue_marks[i] || pg_atomic_read_u64(&database->queue_marks[i])) return true;
  return false;
}

void return_queue_mark(int slot) {
  pending.any = pending.any_returned = true;
  pending.returned[slot / 64] |= UINT64CONST(1) << (slot % 64);
}

void wake_for_commit() {
  DatabaseState* database = this_database_if_known();
  if (pending.any && database) wake_after_commit(database);
  forget();
}

// Also runs at PREPARE: the transaction commits in another session, and reconcile_queues() finds
// its jobs.
void wake_for_abort() {
  DatabaseState* database = this_database_if_known();
  if (pending.any && database) wake_after_abort(database);
  forget();
}

// Jobs that a rolled-back savepoint claimed or promoted must be found again. All claims and
// promotions so far are signalled as undone, because an extra wake-up is harmless.
void wake_for_undone_savepoint(SubTransactionId undone) {
  DatabaseState* database = this_database_if_known();
  if (database) {
    // A subtransaction with a higher id began within the undone one.
    if (pending.sweeps && pending.sweeps_in >= undone) request_sweep(database);
    if (pending.claimed_bits) wake_waiters(database, pending.claimed, pending.claimed_bits, false);
  }
  if (!pending.any_taken) return;
  for (int i = 0; i < kMarkWords; i++) pending.returned[i] |= pending.taken[i];
  pending.any_returned = pending.undone = true;
}

}  // namespace pulse

// pulse._note_job(identifier, queue_name, run_at): see note_job().
PULSE_FUNCTION(pulse_note_job) {
  pulse::note_job(PG_GETARG_TEXT_PP(0), PG_ARGISNULL(1) ? nullptr : PG_GETARG_TEXT_PP(1),
                  PG_GETARG_TIMESTAMPTZ(2));
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_note_queue) {
  pulse::note_queue_slot(pulse::queue_slot(PG_GETARG_TEXT_PP(0)));
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_is_marked) {
  pulse::DatabaseState* database = pulse::this_database();
  int slot = pulse::queue_slot(PG_GETARG_TEXT_PP(0));
  PG_RETURN_BOOL(database && (pg_atomic_read_u64(&database->queue_marks[slot / 64]) &
                              (UINT64CONST(1) << (slot % 64))) != 0);
}

PULSE_FUNCTION(pulse_note_worker) {
  pulse::note_worker(PG_GETARG_INT64(0));
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_note_everybody) {
  pulse::note_all_waiters();
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_start_sweep) {
  pulse::start_sweep();
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_note_sweep_due) {
  pulse::note_sweep_due(PG_GETARG_TIMESTAMPTZ(0));
  PG_RETURN_BOOL(true);
}
