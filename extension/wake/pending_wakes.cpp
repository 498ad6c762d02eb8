#include "wake/pending_wakes.hpp"

#include "background/process.hpp"
#include "claim/claims_in_progress.hpp"
#include "claim/low_water_mark.hpp"
#include "finish/fence.hpp"
#include "job/key_lock.hpp"
#include "job/task_changes.hpp"
#include "liveness/attachment.hpp"
#include "queue/queue_marks.hpp"
#include "server/settings.hpp"
#include "wake/async_commit.hpp"
#include "wake/told_commit.hpp"
#include "wake/wait_for_job.hpp"
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
  uint64 ready_bits;
  TimestampTz ready_from[kTaskBits];  // where heads must not be above
  uint64 claimed_bits;
  uint32 claimed[kTaskBits];
  uint64 passed_bits;
  TimestampTz passed_from[kTaskBits];  // where heads were raised by this transaction
  bool any_queue;
  uint64 marks[kMarkWords];
  uint64 fresh[kMarkWords];  // those of them at which this transaction has not looked itself
  bool any_taken;
  uint64 taken[kMarkWords];
  bool any_returned;
  bool undone;  // a savepoint's promotions were rolled back
  uint64 returned[kMarkWords];
  TimestampTz next_due[kTaskBits];
  uint64 due_bits;
  TimestampTz parked_due;
  TimestampTz sweep_due;
  bool everybody;
  bool sweeps;  // a sweep is under way: the request for one is answered
  SubTransactionId sweeps_in;
  int workers;
  int64 worker[kNotedWorkers];
};

Pending pending;

void set_marks(DatabaseState* database, const uint64* marks) {
  for (int i = 0; i < kMarkWords; i++)
    if (marks[i]) pg_atomic_fetch_or_u64(&database->marks[i], marks[i]);
}

void tell_due_times(DatabaseState* database) {
  uint64 lowered = 0;
  bool all = false;
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((pending.due_bits >> bit) & 1)
      if (lower_due(&database->next_due[bit], pending.next_due[bit]))
        lowered |= UINT64CONST(1) << bit;
  if (pending.parked_due && lower_due(&database->parked_due, pending.parked_due)) all = true;
  if (pending.sweep_due && lower_due(&database->sweep_due, pending.sweep_due)) {
    wake_background(database);
    all = true;
  }
  if (all)
    nudge_waiters();
  else if (lowered)
    nudge_timekeepers(lowered);
}

void lower(DatabaseState* database, uint64 task_bits, const TimestampTz* from) {
  if (!heads_are_kept()) return;
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((task_bits >> bit) & 1)
      lower_heads(head_bucket(place_of_database(database), bit), from[bit]);
}

// True when somebody was woken for a job.
bool tell_commit(DatabaseState* database) {
  // Before anybody is told to look.
  lower(database, pending.ready_bits, pending.ready_from);
  if (pending.any_queue) set_marks(database, pending.marks);
  if (pending.any_returned) set_marks(database, pending.returned);
  // A worker may be between its claim and its wait: the generation reaches it there.
  if (pending.any_queue || pending.undone || pending.everybody || pending.workers > 0)
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  tell_due_times(database);
  // Whoever found a queue busy because of us left its mark: one waiter takes it up.
  bool wake_any = pending.any_queue || pending.any_taken;
  bool is_somebody_woken = (pending.task_bits || wake_any) &&
                           tell_waiters(database, pending.jobs, pending.task_bits, wake_any);
  for (int i = 0; i < pending.workers; i++) wake_worker(pending.worker[i]);
  if (pending.everybody) wake_all_waiters();
  return is_somebody_woken;
}

void ask_for_sweep(DatabaseState* database) {
  if (!lower_due(&database->sweep_due, wall_now())) return;
  wake_background(database);
  nudge_waiters();
}

void tell_abort(DatabaseState* database) {
  if (pending.sweeps) ask_for_sweep(database);
  lower(database, pending.passed_bits, pending.passed_from);
  bool marks = pending.any_taken || pending.any_returned;
  if (marks) {
    set_marks(database, pending.taken);
    set_marks(database, pending.returned);
    pg_atomic_fetch_add_u64(&database->any_generation, 1);
  }
  // Who stepped over the rows of an undone claim, and waits, is to look again.
  if (pending.claimed_bits || marks)
    tell_waiters(database, pending.claimed, pending.claimed_bits, marks);
}

void forget() {
  if (pending.any) memset(&pending, 0, sizeof(pending));
}

extern "C" void pulse_transaction_callback(XactEvent event, void*) {
  DatabaseState* database = this_database_if_known();
  switch (event) {
    case XACT_EVENT_PRE_PREPARE: check_fences(); break;
    case XACT_EVENT_PRE_COMMIT:
      check_fences();
      prepare_lazy_commit(pending.task_bits != 0);
      break;
    case XACT_EVENT_COMMIT: {
      bool is_flush_due = forget_lazy_writes();
      withdraw_announcements();
      bool is_somebody_woken = pending.any && database && tell_commit(database);
      if (is_flush_due) flush_told_commit(is_somebody_woken);
      forget();
      forget_owed();
      forget_fences();
      forget_key_locks();
      leave_attachments();
      settle_queue_looks(true);
      break;
    }
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
      count_rollback_as_task_change();
      forget_lazy_writes();
      withdraw_announcements();
      // A prepared transaction commits elsewhere; reconciling finds what it left.
      if (pending.any && database) tell_abort(database);
      forget();
      forget_fences();
      forget_key_locks();
      keep_attachments(TopSubTransactionId);
      settle_queue_looks(false);
      leave_waiting();
      break;
    default: break;
  }
}

// What a rolled-back savepoint claimed or promoted is to be found again: everything this
// transaction did so far is told as if undone, because a wake-up too many is harmless.
void undo_savepoint(SubTransactionId undone) {
  DatabaseState* database = this_database_if_known();
  if (database) {
    // One that began later began within it.
    if (pending.sweeps && pending.sweeps_in >= undone) ask_for_sweep(database);
    lower(database, pending.passed_bits, pending.passed_from);
    if (pending.claimed_bits) tell_waiters(database, pending.claimed, pending.claimed_bits, false);
  }
  if (!pending.any_taken) return;
  for (int i = 0; i < kMarkWords; i++) pending.returned[i] |= pending.taken[i];
  pending.any_returned = pending.undone = true;
}

extern "C" void pulse_subtransaction_callback(SubXactEvent event, SubTransactionId mine,
                                              SubTransactionId parent, void*) {
  if (event == SUBXACT_EVENT_ABORT_SUB) {
    drop_fences(mine);
    forget_key_locks();
    count_rollback_as_task_change();
    keep_attachments(mine);
    settle_queue_looks(false);
    undo_savepoint(mine);
    leave_waiting();
  }
  if (event == SUBXACT_EVENT_COMMIT_SUB) hand_up_fences(mine, parent);
}

// True when there is anybody to tell. Takes the shared struct now, because a callback must not.
bool start_note() {
  if (!this_database()) return false;
  pending.any = true;
  return true;
}

void note_from(uint64* bits, TimestampTz* from, int bit, TimestampTz run_at) {
  uint64 mask = UINT64CONST(1) << bit;
  if (!(*bits & mask) || run_at < from[bit]) from[bit] = run_at;
  *bits |= mask;
}

void note_due(int bit, TimestampTz run_at) {
  note_from(&pending.due_bits, pending.next_due, bit, run_at);
}

}  // namespace

void register_commit_callback() {
  RegisterXactCallback(pulse_transaction_callback, nullptr);
  RegisterSubXactCallback(pulse_subtransaction_callback, nullptr);
}

void note_ready(const char* identifier, int length, TimestampTz run_at) {
  if (!start_note()) return;
  int bit = task_bit(identifier, length);
  note_from(&pending.ready_bits, pending.ready_from, bit, run_at);
  if (run_at > wall_now()) {
    note_due(bit, run_at);
    return;
  }
  note_more(bit);
}

TimestampTz own_ready_from(int bit) {
  return (pending.ready_bits >> bit) & 1 ? pending.ready_from[bit] : PG_INT64_MAX;
}

void note_claimed(int bit) {
  if (!start_note()) return;
  pending.claimed_bits |= UINT64CONST(1) << bit;
  pending.claimed[bit]++;
}

void note_passed(int bit, TimestampTz run_at) {
  if (start_note()) note_from(&pending.passed_bits, pending.passed_from, bit, run_at);
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
  pending.marks[slot / 64] |= UINT64CONST(1) << (slot % 64);
  pending.fresh[slot / 64] |= UINT64CONST(1) << (slot % 64);
}

void note_parked_due(TimestampTz run_at) {
  if (!start_note()) return;
  if (!pending.parked_due || run_at < pending.parked_due) pending.parked_due = run_at;
}

void note_sweep_due(TimestampTz at) {
  if (!start_note()) return;
  if (!pending.sweep_due || at < pending.sweep_due) pending.sweep_due = at;
}

void note_everybody() {
  if (start_note()) pending.everybody = true;
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
static bool take_fresh_mark(int* slot) {
  for (int i = 0; pending.any_queue && i < kMarkWords; i++) {
    if (!pending.fresh[i]) continue;
    int bit = __builtin_ctzll(pending.fresh[i]);
    pending.fresh[i] &= ~(UINT64CONST(1) << bit);
    *slot = i * 64 + bit;
    return true;
  }
  return false;
}

bool take_mark(int* slot) {
  if (take_fresh_mark(slot)) return true;
  // Each look goes on where the last one ended, so that no mark waits behind busier ones.
  static int next_word = 0;
  DatabaseState* database = this_database();
  if (!database) return false;
  for (int i = 0; i < kMarkWords; i++) {
    int at = (next_word + i) % kMarkWords;
    uint64 word = pg_atomic_read_u64(&database->marks[at]);
    while (word) {
      int bit = __builtin_ctzll(word);
      uint64 mask = UINT64CONST(1) << bit;
      word &= ~mask;
      // Clear first, then promote: a mark set meanwhile stays for the next look.
      if (!(pg_atomic_fetch_and_u64(&database->marks[at], ~mask) & mask)) continue;
      pending.any = pending.any_taken = true;
      pending.taken[at] |= mask;
      *slot = at * 64 + bit;
      next_word = at;
      return true;
    }
  }
  return false;
}

bool marks_remain() {
  DatabaseState* database = this_database();
  for (int i = 0; database && i < kMarkWords; i++)
    if (pending.fresh[i] || pg_atomic_read_u64(&database->marks[i])) return true;
  return false;
}

void return_mark(int slot) {
  pending.any = pending.any_returned = true;
  pending.returned[slot / 64] |= UINT64CONST(1) << (slot % 64);
}

bool in_client_block() { return IsTransactionBlock(); }

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
  PG_RETURN_BOOL(database && (pg_atomic_read_u64(&database->marks[slot / 64]) &
                              (UINT64CONST(1) << (slot % 64))) != 0);
}

PULSE_FUNCTION(pulse_note_worker) {
  pulse::note_worker(PG_GETARG_INT64(0));
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_note_everybody) {
  pulse::note_everybody();
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

PULSE_FUNCTION(pulse_in_client_block) { PG_RETURN_BOOL(pulse::in_client_block()); }
