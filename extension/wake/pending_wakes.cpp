#include "wake/pending_wakes.hpp"

#include "server/clocks.hpp"
#include "wake/background_wake.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kNotedWorkers = 16;

// Lives for one transaction. A rolled-back savepoint leaves its notes here: a wake-up too many is
// harmless, one too few is not.
struct Pending {
  bool any;
  uint64 task_bits;
  uint32 jobs[kTaskBits];
  EarliestRunAt ready;  // where marks must not be above
  uint64 claimed_bits;
  uint32 claimed[kTaskBits];
  EarliestRunAt passed;  // where marks were raised by this transaction
  bool any_queue;
  uint64 queue_marks[kMarkWords];
  uint64
      own_queue_marks[kMarkWords];  // those of them at which this transaction has not looked itself
  bool any_taken;
  uint64 taken[kMarkWords];
  bool any_returned;
  bool undone;  // a savepoint's promotions were rolled back
  uint64 returned[kMarkWords];
  EarliestRunAt due;
  TimestampTz parked_due;
  TimestampTz sweep_due;
  bool all_waiters;
  bool sweeps;  // a sweep is under way: the request for one is answered
  SubTransactionId sweeps_in;
  int workers;
  int64 worker[kNotedWorkers];
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
  // A worker may be between its claim and its wait: the generation reaches it there.
  if (pending.any_queue || pending.undone || pending.all_waiters || pending.workers > 0)
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  publish_due_times(database);
  // Whoever found a queue busy because of us left its mark: one waiter takes it up.
  bool wake_any = pending.any_queue || pending.any_taken;
  if (pending.task_bits || wake_any)
    wake_waiters(database, pending.jobs, pending.task_bits, wake_any);
  for (int i = 0; i < pending.workers; i++) wake_worker(pending.worker[i]);
  if (pending.all_waiters) wake_all_waiters();
}

void ask_for_sweep(DatabaseState* database) {
  if (!lower_due(&database->sweep_due, wall_now())) return;
  wake_background(database);
  signal_waiters();
}

void wake_after_abort(DatabaseState* database) {
  if (pending.sweeps) ask_for_sweep(database);
  bool marks = pending.any_taken || pending.any_returned;
  if (marks) {
    set_queue_marks(database, pending.taken);
    set_queue_marks(database, pending.returned);
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  }
  // Who stepped over the rows of an undone claim, and waits, is to look again.
  if (pending.claimed_bits || marks)
    wake_waiters(database, pending.claimed, pending.claimed_bits, marks);
}

void forget() {
  if (pending.any) memset(&pending, 0, sizeof(pending));
}

// True when there is anybody to tell. Takes the shared struct now, because a callback must not.
bool start_note() {
  if (!this_database()) return false;
  pending.any = true;
  return true;
}

void note_from(EarliestRunAt* earliest, int bit, TimestampTz run_at) {
  uint64 mask = UINT64CONST(1) << bit;
  if (!(earliest->bits & mask) || run_at < earliest->at[bit]) earliest->at[bit] = run_at;
  earliest->bits |= mask;
}

}  // namespace

void note_ready(const char* identifier, int length, TimestampTz run_at) {
  if (!start_note()) return;
  int bit = task_bit(identifier, length);
  note_from(&pending.ready, bit, run_at);
  if (run_at > wall_now()) {
    note_from(&pending.due, bit, run_at);
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
  if (!start_note()) return;
  pending.claimed_bits |= UINT64CONST(1) << bit;
  pending.claimed[bit]++;
}

void note_passed(int bit, TimestampTz run_at) {
  if (start_note()) note_from(&pending.passed, bit, run_at);
}

void note_more(int bit) {
  if (!start_note()) return;
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
  // A future job marks its queue too: it may have fallen due by the time this commits.
  note_queue_slot(queue_slot(queue_name));
  if (run_at > wall_now())
    note_parked_due(run_at);
  else
    note_more(task_bit(name, length));
}

void note_queue_slot(int slot) {
  if (!start_note()) return;
  pending.any_queue = true;
  pending.queue_marks[slot / 64] |= UINT64CONST(1) << (slot % 64);
  pending.own_queue_marks[slot / 64] |= UINT64CONST(1) << (slot % 64);
}

void note_parked_due(TimestampTz run_at) {
  if (!start_note()) return;
  if (!pending.parked_due || run_at < pending.parked_due) pending.parked_due = run_at;
}

void note_sweep_due(TimestampTz at) {
  if (!start_note()) return;
  if (!pending.sweep_due || at < pending.sweep_due) pending.sweep_due = at;
}

void note_all_waiters() {
  if (start_note()) pending.all_waiters = true;
}

void start_sweep() {
  if (!start_note()) return;
  // Before it looks: a session that ends from now on asks anew.
  pg_atomic_write_u64(&this_database()->sweep_due, kNever);
  pending.sweeps = true;
  pending.sweeps_in = GetCurrentSubTransactionId();
}

void note_worker(int64 worker_id) {
  if (!start_note()) return;
  // More than fit are woken by their heartbeat.
  if (pending.workers < kNotedWorkers) pending.worker[pending.workers++] = worker_id;
}

// A mark of this transaction's own doing. It is told at commit all the same.
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
  // Each look goes on where the last one ended, so that no mark waits behind busier ones.
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
      // Clear first, then promote: a mark set meanwhile stays for the next look.
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

// A prepared transaction commits elsewhere; reconciling finds what it left.
void wake_for_abort() {
  DatabaseState* database = this_database_if_known();
  if (pending.any && database) wake_after_abort(database);
  forget();
}

// What a rolled-back savepoint claimed or promoted is to be found again: everything this
// transaction did so far is told as if undone, because a wake-up too many is harmless.
void wake_for_undone_savepoint(SubTransactionId undone) {
  DatabaseState* database = this_database_if_known();
  if (database) {
    // One that began later began within it.
    if (pending.sweeps && pending.sweeps_in >= undone) ask_for_sweep(database);
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
