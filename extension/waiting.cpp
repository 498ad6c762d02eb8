#include "waiting.hpp"

#include "errors.hpp"
#include "settings.hpp"

// From libpq/libpq.h, which cannot be included without Kerberos' headers.
extern "C" PGDLLIMPORT WaitEventSet* FeBeWaitSet;

namespace pulse {
namespace {

constexpr int kMostBusyLooks = 10;
constexpr int kClientSocketPosition = 0;
constexpr int kClientWaitEvents = 3;
constexpr uint64 kStateMask = 3;

// What the last claim of this session saw.
struct Sample {
  bool valid;
  WorkLeft work_left;
  int busy_looks;  // how often in a row a queue was found busy
  int64 worker_id;
  uint64 tasks;
  uint64 generation[kTaskBits];
  uint64 any_generation;
};

Sample sample;
Waiter* own = nullptr;

WaiterState state_of(uint64 word) { return static_cast<WaiterState>(word & kStateMask); }

uint64 next_word(uint64 word, WaiterState state) { return (word & ~kStateMask) + 4 + state; }

bool turn(Waiter* waiter, WaiterState from, WaiterState to) {
  uint64 word = pg_atomic_read_u64(&waiter->word);
  return state_of(word) == from &&
         pg_atomic_compare_exchange_u64(&waiter->word, &word, next_word(word, to));
}

void set_latch_of(const Waiter* waiter) {
  SetLatch(&ProcGlobal->allProcs[waiter->backend].procLatch);
}

// Wakes this waiter if it still is the one that was looked at.
bool wake(Waiter* waiter, uint64 seen) {
  if (!pg_atomic_compare_exchange_u64(&waiter->word, &seen, next_word(seen, kWoken))) return false;
  set_latch_of(waiter);
  return true;
}

bool enter_waiting(int64 worker_id, uint64 tasks) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    if (!turn(&waiters[i], kFree, kTaken)) continue;
    own = &waiters[i];
    own->database = MyDatabaseId;
    own->backend = MyProc->pgprocno;
    own->tasks = tasks;
    own->worker_id = worker_id;
    pg_atomic_fetch_add_u32(&all->waiting, 1);
    turn(own, kTaken, kWaiting);
    return true;
  }
  return false;
}

// Frees the waiter; true when somebody had woken it.
bool exit_waiting() {
  if (!own) return false;
  uint64 word = pg_atomic_read_u64(&own->word);
  while (!pg_atomic_compare_exchange_u64(&own->word, &word, next_word(word, kFree))) {
  }
  own = nullptr;
  pg_atomic_fetch_sub_u32(&shared()->waiting, 1);
  return state_of(word) == kWoken;
}

bool moved_since_sample(DatabaseState* database) {
  if (sample.work_left == WorkLeft::kNow) return true;
  if (pg_atomic_read_u64(&database->any_generation) != sample.any_generation) return true;
  for (int bit = 0; bit < kTaskBits; bit++)
    if (((sample.tasks >> bit) & 1) &&
        pg_atomic_read_u64(&database->generation[bit]) != sample.generation[bit])
      return true;
  return false;
}

// Takes a due time that has passed, so that one waiter acts on it and the others sleep on.
bool take_due(pg_atomic_uint64* due, TimestampTz now) {
  uint64 at = pg_atomic_read_u64(due);
  while (at <= static_cast<uint64>(now))
    if (pg_atomic_compare_exchange_u64(due, &at, kNever)) return true;
  return false;
}

// Takes the request for a sweep for a moment: when whoever was asked does not sweep, it is offered
// anew.
bool take_sweep_due(DatabaseState* database, TimestampTz now) {
  uint64 at = pg_atomic_read_u64(&database->sweep_due);
  uint64 again = static_cast<uint64>(now + settings.poll_interval_ms * INT64CONST(1000));
  while (at <= static_cast<uint64>(now))
    if (pg_atomic_compare_exchange_u64(&database->sweep_due, &at, again)) return true;
  return false;
}

bool job_fell_due(DatabaseState* database, uint64 tasks, TimestampTz now) {
  bool fell = pg_atomic_read_u64(&database->parked_due) <= static_cast<uint64>(now);
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((tasks >> bit) & 1) fell |= take_due(&database->next_due[bit], now);
  return fell;
}

// The next moment at which something falls due.
TimestampTz next_due(DatabaseState* database, uint64 tasks) {
  uint64 at = pg_atomic_read_u64(&database->parked_due);
  at = Min(at, pg_atomic_read_u64(&database->sweep_due));
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((tasks >> bit) & 1) at = Min(at, pg_atomic_read_u64(&database->next_due[bit]));
  return static_cast<TimestampTz>(at);
}

// The limit of a wait is kept on the monotonic clock: a step of the wall clock neither ends a wait
// nor makes it endless.
int64 monotonic_us() {
  instr_time now;
  INSTR_TIME_SET_CURRENT(now);
  return static_cast<int64>(INSTR_TIME_GET_MICROSEC(now));
}

void ask_for_sweep() {
  ereport(NOTICE, (errcode(kSweepDue), errmsg("a sweep is due"),
                   errhint("Call pulse.sweep() now; it recovers the jobs of lost workers.")));
}

// Sleeps until the latch is set, the time is up or the client has gone: a worker that died while it
// waited frees its connection at once, whatever client_connection_check_interval says.
void sleep_for(int64 wait_us) {
  long timeout_ms = static_cast<long>((Max(wait_us, 0) + 999) / 1000);
  if (!FeBeWaitSet) {
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
              PG_WAIT_EXTENSION);
  } else {
    WaitEvent events[kClientWaitEvents];
    ModifyWaitEvent(FeBeWaitSet, kClientSocketPosition, WL_SOCKET_CLOSED, nullptr);
    int count =
        WaitEventSetWait(FeBeWaitSet, timeout_ms, events, kClientWaitEvents, PG_WAIT_EXTENSION);
    for (int i = 0; i < count; i++) {
      if (events[i].events & WL_POSTMASTER_DEATH) proc_exit(1);
      if (!(events[i].events & WL_SOCKET_CLOSED)) continue;
      ClientConnectionLost = true;
      InterruptPending = true;
    }
  }
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

int64 poll_interval_us() { return settings.poll_interval_ms * INT64CONST(1000); }

void wait_for_wake(DatabaseState* database, int64 worker_id, int64 wait_us) {
  bool sampled = sample.valid && sample.worker_id == worker_id;
  uint64 tasks = sampled ? sample.tasks : ~UINT64CONST(0);
  int64 end = monotonic_us() + wait_us;
  if (!enter_waiting(worker_id, tasks)) {
    // More waiters than there are places: look again soon instead.
    sleep_for(Min(wait_us, poll_interval_us()));
    return;
  }
  for (;;) {
    TimestampTz now = wall_now();
    int64 left_us = end - monotonic_us();
    if (sampled && moved_since_sample(database)) break;
    if (state_of(pg_atomic_read_u64(&own->word)) == kWoken) break;
    if (left_us <= 0 || job_fell_due(database, tasks, now)) break;
    if (take_sweep_due(database, now)) {
      exit_waiting();
      ask_for_sweep();
      return;
    }
    TimestampTz due = next_due(database, tasks);
    sleep_for(due < now + left_us ? due - now : left_us);
  }
  exit_waiting();
}

// Ends the statement's transaction, so that the wait holds neither snapshot nor transaction id.
void drop_snapshot() {
  if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  SPI_commit();
  SPI_finish();
}

int64 checked_wait_us(const Interval* max_wait, bool sampled) {
  int64 days = max_wait->day + max_wait->month * INT64CONST(30);
  int64 wait_us = max_wait->time;
  if (days < 0 || days > 1 || wait_us + days * USECS_PER_DAY < 0 ||
      wait_us + days * USECS_PER_DAY > USECS_PER_DAY)
    ereport(ERROR,
            (errcode(kOutOfRange), errmsg("max_wait must be between 0 and 1 day"),
             errhint("30 seconds is a good value: a dead client frees its connection then.")));
  wait_us += days * USECS_PER_DAY;
  // Without a claim in this session nothing tells what happened since it: look again soon.
  int64 longest_us = wait_us;
  if (!sampled || sample.work_left == WorkLeft::kSoon) longest_us = poll_interval_us();
  if (sampled && sample.work_left == WorkLeft::kBusy)
    longest_us = Min(poll_interval_us(), INT64CONST(1000) << sample.busy_looks);
  return Min(wait_us, longest_us);
}

}  // namespace

void sample_generations(int64 worker_id, uint64 tasks) {
  DatabaseState* database = this_database();
  sample.valid = database != nullptr;
  sample.work_left = WorkLeft::kNone;
  sample.worker_id = worker_id;
  sample.tasks = tasks;
  if (!database) return;
  sample.any_generation = pg_atomic_read_u64(&database->any_generation);
  for (int bit = 0; bit < kTaskBits; bit++)
    sample.generation[bit] = pg_atomic_read_u64(&database->generation[bit]);
  pg_read_barrier();
}

void note_work_left(WorkLeft left) {
  sample.work_left = left;
  sample.busy_looks = left == WorkLeft::kBusy ? Min(sample.busy_looks + 1, kMostBusyLooks) : 0;
}

void wake_waiters(uint32* jobs, uint64 task_bits, bool any) {
  SharedState* all = shared();
  pg_memory_barrier();
  if (pg_atomic_read_u32(&all->waiting) == 0) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters && (task_bits || any); i++) {
    uint64 seen = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(seen) != kWaiting || waiters[i].database != MyDatabaseId) continue;
    uint64 served = waiters[i].tasks & task_bits;
    if (!served && !any) continue;
    if (!wake(&waiters[i], seen)) continue;
    if (!served) {
      any = false;
      continue;
    }
    int bit = __builtin_ctzll(served);
    if (--jobs[bit] == 0) task_bits &= ~(UINT64CONST(1) << bit);
  }
}

void wake_worker(int64 worker_id) {
  SharedState* all = shared();
  if (!all) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    uint64 seen = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(seen) == kWaiting && waiters[i].database == MyDatabaseId &&
        waiters[i].worker_id == worker_id)
      wake(&waiters[i], seen);
  }
}

void nudge_waiters(uint64 tasks) {
  SharedState* all = shared();
  pg_memory_barrier();
  if (!all || pg_atomic_read_u32(&all->waiting) == 0) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++)
    if (state_of(pg_atomic_read_u64(&waiters[i].word)) == kWaiting &&
        waiters[i].database == MyDatabaseId && (waiters[i].tasks & tasks))
      set_latch_of(&waiters[i]);
}

void offer_sweep() {
  DatabaseState* database = this_database();
  if (database && take_sweep_due(database, wall_now())) ask_for_sweep();
}

void leave_waiting() {
  if (!own) return;
  uint64 tasks = own->tasks;
  if (!exit_waiting()) return;
  uint32 jobs[kTaskBits];
  for (uint32& count : jobs) count = 1;
  int bit = tasks ? __builtin_ctzll(tasks) : 0;
  wake_waiters(jobs, UINT64CONST(1) << bit, true);
}

}  // namespace pulse

PULSE_FUNCTION(pulse_offer_sweep) {
  pulse::offer_sweep();
  PG_RETURN_BOOL(true);
}

// CALL pulse.wait_for_job(worker_id, max_wait): see sql/wait.sql for the contract.
PULSE_FUNCTION(pulse_wait_for_job) {
  auto* call = reinterpret_cast<CallContext*>(fcinfo->context);
  if (!call || !IsA(call, CallContext) || call->atomic)
    ereport(ERROR, (errcode(pulse::kNotInTransactionBlock),
                    errmsg("wait_for_job cannot run inside a transaction block"),
                    errdetail("Waiting there would hold back vacuum."),
                    errhint("Call it by itself, outside BEGIN and outside functions.")));
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
    ereport(ERROR, (errcode(pulse::kOutOfRange), errmsg("worker_id and max_wait must not be null"),
                    errhint("Use the id that pulse.register_worker() returned.")));
  PreventCommandDuringRecovery("wait_for_job");
  int64 worker_id = PG_GETARG_INT64(0);
  bool sampled = pulse::sample.valid && pulse::sample.worker_id == worker_id;
  int64 wait_us = pulse::checked_wait_us(PG_GETARG_INTERVAL_P(1), sampled);
  pulse::DatabaseState* database = pulse::this_database();
  pulse::drop_snapshot();
  if (database)
    pulse::wait_for_wake(database, worker_id, wait_us);
  else
    pulse::sleep_for(Min(wait_us, pulse::poll_interval_us()));
  PG_RETURN_VOID();
}
