#include "wake/wait_for_job.hpp"

#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "wake/session_wait.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kMaxBusyDoublings = 10;
// The first 32 waiters of a database claim now and then without a wake-up, in case a wake-up was
// lost.
constexpr int kCheckingWaiters = 32;
constexpr int64 kCheckAfterUs = 30000000;

// State that the last claim of this session left for the wait that follows.
struct WakeState {
  WorkLeft work_left;
  int busy_claims;  // consecutive claims that found a busy queue or job
  int64 worker_id;  // 0: no claim, or no shared memory
  uint64 tasks;
  uint64 wake_group;
  uint32 capacity;
  // The entry of the wake group; NULL: the session goes by the generations of its tasks.
  WakeGroup* group_entry;
  uint64 wake_group_generation;
  uint64 generation[kTaskBits];
  uint64 any_generation;
};

WakeState sample;
WakeGroup* joined = nullptr;
Wake unused_wakeup;  // the wake-up that this transaction's claim consumed
bool is_waiting = false;

void leave_wake_group() {
  if (joined) pg_atomic_fetch_sub_u32(&joined->users, 1);
  joined = nullptr;
}

bool has_terms(WakeGroup* entry, uint64 wake_group, uint64 tasks) {
  return pg_atomic_read_u64(&entry->wake_group) == wake_group &&
         pg_atomic_read_u64(&entry->tasks) == tasks;
}

// The entry of this wake group, which the session keeps until it joins another group or ends. NULL
// when no entry is free. A commit that still reads the entry's previous content is visible to the
// claim that follows.
WakeGroup* join_wake_group(DatabaseState* database, uint64 wake_group, uint64 tasks) {
  if (joined && has_terms(joined, wake_group, tasks)) return joined;
  leave_wake_group();
  lock_spin(&database->wake_group_lock);
  for (WakeGroup& entry : database->wake_groups) {
    bool is_free = pg_atomic_read_u32(&entry.users) == 0;
    if (is_free && !joined) joined = &entry;
    if (is_free || !has_terms(&entry, wake_group, tasks)) continue;
    joined = &entry;
    break;
  }
  if (joined) {
    pg_atomic_write_u64(&joined->wake_group, wake_group);
    pg_atomic_write_u64(&joined->tasks, tasks);
    pg_atomic_fetch_add_u32(&joined->users, 1);
  }
  unlock_spin(&database->wake_group_lock);
  return joined;
}

bool moved_since_sample(DatabaseState* database) {
  if (sample.work_left >= WorkLeft::kUnseen) return true;
  if (pg_atomic_read_u64(&database->any_generation) != sample.any_generation) return true;
  if (sample.group_entry)
    return pg_atomic_read_u64(&sample.group_entry->generation) != sample.wake_group_generation;
  for (int bit = 0; bit < kTaskBits; bit++)
    if (((sample.tasks >> bit) & 1) &&
        pg_atomic_read_u64(&database->generation[bit]) != sample.generation[bit])
      return true;
  return false;
}

// Takes a due time that has passed, so that only one waiter acts on it.
bool take_due(pg_atomic_uint64* due, TimestampTz now) {
  uint64 at = pg_atomic_read_u64(due);
  while (at <= static_cast<uint64>(now))
    if (pg_atomic_compare_exchange_u64(due, &at, kNever)) return true;
  return false;
}

// When this session handles a sweep due at `at`. The background worker comes first, then the timer
// owners, then every waiter after a long delay.
uint64 sweep_due_for_session(DatabaseState* database, uint64 at) {
  if (at == kNever || !is_served(database)) return at;
  int64 behind_us = is_among_first_waiters(kTimerOwners) ? 0 : kCheckAfterUs;
  return at + static_cast<uint64>(poll_interval_us() + behind_us);
}

// Postpones the sweep request by a poll interval. If the notified client does not sweep, the
// request falls due then.
bool take_sweep_due(DatabaseState* database, TimestampTz now) {
  uint64 at = pg_atomic_read_u64(&database->sweep_due);
  uint64 postponed = static_cast<uint64>(now + poll_interval_us());
  while (sweep_due_for_session(database, at) <= static_cast<uint64>(now))
    if (pg_atomic_compare_exchange_u64(&database->sweep_due, &at, postponed)) return true;
  return false;
}

// Wakes a waiter of each wake group for each job that became due, perhaps this waiter.
void wake_for_due_jobs(DatabaseState* database, TimestampTz now) {
  JobCounts jobs = {};
  for (int bit = 0; bit < kTaskBits; bit++)
    if (take_due(&database->next_due[bit], now)) jobs.add(bit);
  if (jobs.bits) wake_waiters(database, jobs, false);
}

// The next time at which work for this session becomes due.
TimestampTz next_deadline(DatabaseState* database) {
  uint64 at = pg_atomic_read_u64(&database->parked_due);
  at = Min(at, sweep_due_for_session(database, pg_atomic_read_u64(&database->sweep_due)));
  if (!is_among_first_waiters(kTimerOwners)) return static_cast<TimestampTz>(at);
  at = Min(at, earliest_due(database));
  uint64 check = pg_atomic_read_u64(&database->wake_check_due);
  if (check != kNever) at = Min(at, static_cast<uint64>(wall_now()) + check - monotonic_us());
  return static_cast<TimestampTz>(at);
}

void ask_for_sweep() {
  ereport(NOTICE, (errcode(kSweepDue), errmsg("a sweep is due"),
                   errhint("Call pulse.sweep() now; it recovers the jobs of lost workers.")));
}

void hand_over_unused() {
  if (!unused_wakeup.is_handed_over) hand_over_wakeup(unused_wakeup);
  unused_wakeup = {};
}

extern "C" void pulse_waiter_exit(int, Datum) {
  hand_over_wakeup(consume_wakeup());
  hand_over_unused();
  leave_wake_group();
}

void register_session_end() {
  static bool is_registered = false;
  if (!is_registered) on_shmem_exit(pulse_waiter_exit, Int32GetDatum(0));
  is_registered = true;
}

// Waits until a wake-up, a due time or the end of the time.
void wait_in_entry(DatabaseState* database, bool sampled, int64 end) {
  // The wait compares generations only once: later commits find this waiter, and wake it if the
  // choice falls on it. A second comparison would end the wait for commits that woke another
  // waiter.
  if (sampled && moved_since_sample(database)) return;
  // DROP EXTENSION gives the database entry back, perhaps to another database.
  while (!is_woken() && this_database_if_known()) {
    TimestampTz now = wall_now();
    int64 left_us = end - monotonic_us();
    bool parked_job_is_due = pg_atomic_read_u64(&database->parked_due) <= static_cast<uint64>(now);
    if (left_us <= 0 || parked_job_is_due) return;
    wake_for_due_jobs(database, now);
    if (take_due(&database->wake_check_due, monotonic_us())) hand_over_untaken(database);
    if (take_sweep_due(database, now)) {
      ask_for_sweep();
      return;
    }
    TimestampTz due = next_deadline(database);
    sleep_for(due < now + left_us ? due - now : left_us);
  }
}

void wait_for_wake(DatabaseState* database, int64 worker_id, int64 wait_us) {
  bool sampled = sample.worker_id == worker_id;
  uint64 tasks = sampled ? sample.tasks : ~UINT64CONST(0);
  uint64 wake_group = sampled ? sample.wake_group : ~static_cast<uint64>(worker_id);
  // The end is on the monotonic clock, so that setting the wall clock neither ends a wait nor makes
  // it endless.
  int64 end = monotonic_us() + wait_us;
  if (const Waiter* entry = entry_of_session()) {
    // A commit woke the worker of this entry, and the worker has not claimed since.
    if (entry->worker_id == worker_id) return;
    leave_waiting();
  }
  register_session_end();
  if (!enter_waiting(worker_id, tasks, wake_group, sampled ? sample.capacity : 1)) {
    // No waiter entry is free, so the worker polls.
    sleep_for(Min(wait_us, poll_interval_us()));
    return;
  }
  if (is_among_first_waiters(kCheckingWaiters)) end = Min(end, monotonic_us() + kCheckAfterUs);
  is_waiting = true;
  wait_in_entry(database, sampled, end);
  is_waiting = false;
  stop_waiting();
}

int64 checked_wait_us(const Interval* max_wait, bool sampled) {
  int64 wait_us = checked_max_wait_us(max_wait);
  // Without a claim in this session, the wait cannot detect commits since the claim, so it is
  // short.
  int64 max_us = wait_us;
  if (!sampled || sample.work_left == WorkLeft::kSoon) max_us = poll_interval_us();
  if (sampled && sample.work_left == WorkLeft::kBusy)
    max_us = Min(poll_interval_us(), INT64CONST(1000) << sample.busy_claims);
  return Min(wait_us, max_us);
}

}  // namespace

bool sample_generations(int64 worker_id, uint64 tasks, uint64 wake_group, int capacity) {
  DatabaseState* database = this_database();
  if (Wake wake = consume_wakeup(); wake.jobs > 0) unused_wakeup = wake;
  if (tasks == 0 || wake_group != unused_wakeup.wake_group) hand_over_unused();
  if (sample.work_left == WorkLeft::kUnseen && sample.worker_id == worker_id && tasks != 0 &&
      sample.wake_group == wake_group)
    return true;
  sample.work_left = WorkLeft::kNone;
  sample.worker_id = database ? worker_id : 0;
  sample.tasks = tasks;
  sample.wake_group = wake_group;
  sample.capacity = static_cast<uint32>(capacity);
  sample.group_entry = nullptr;
  if (!database) return false;
  register_session_end();
  if (tasks != 0) sample.group_entry = join_wake_group(database, wake_group, tasks);
  if (sample.group_entry)
    sample.wake_group_generation = pg_atomic_read_u64(&sample.group_entry->generation);
  sample.any_generation = pg_atomic_read_u64(&database->any_generation);
  for (int bit = 0; bit < kTaskBits; bit++)
    sample.generation[bit] = pg_atomic_read_u64(&database->generation[bit]);
  pg_read_barrier();
  return false;
}

bool was_woken() { return unused_wakeup.jobs > 0; }

void note_work_left(WorkLeft left) {
  sample.work_left = left;
  if (left == WorkLeft::kUnseen) return;
  sample.busy_claims = left == WorkLeft::kBusy ? Min(sample.busy_claims + 1, kMaxBusyDoublings) : 0;
  // Another worker may be allowed the job that this worker must not take yet.
  if (left == WorkLeft::kSoon) hand_over_unused();
}

void offer_sweep() {
  DatabaseState* database = this_database();
  if (database && take_sweep_due(database, wall_now())) ask_for_sweep();
}

void forget_unused_wakeup() {
  // The claims that continue the round use the wake-up, unless the session ends before.
  if (sample.work_left != WorkLeft::kUnseen) unused_wakeup = {};
}

void leave_waiting() {
  Wake wake = consume_wakeup();
  if (wake.jobs == 0) wake = unused_wakeup;
  // A wake-up is handed over once only, because a failing claim may fail in every session.
  if (is_waiting || !wake.is_handed_over) hand_over_wakeup(wake);
  is_waiting = false;
  unused_wakeup = {};
}

}  // namespace pulse

PULSE_FUNCTION(pulse_offer_sweep) {
  pulse::offer_sweep();
  PG_RETURN_BOOL(true);
}

// CALL pulse.wait_for_job(worker_id, max_wait): see sql/worker/wait.sql for the contract.
PULSE_FUNCTION(pulse_wait_for_job) {
  pulse::require_no_transaction_block(fcinfo, "wait_for_job");
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
    ereport(ERROR, (errcode(pulse::kOutOfRange), errmsg("worker_id and max_wait must not be null"),
                    errhint("Use the id that pulse.register_worker() returned.")));
  PreventCommandDuringRecovery("wait_for_job");
  int64 worker_id = PG_GETARG_INT64(0);
  bool sampled = pulse::sample.worker_id == worker_id;
  int64 wait_us = pulse::checked_wait_us(PG_GETARG_INTERVAL_P(1), sampled);
  pulse::DatabaseState* database = pulse::this_database();
  pulse::drop_snapshot();
  if (database)
    pulse::wait_for_wake(database, worker_id, wait_us);
  else
    pulse::sleep_for(Min(wait_us, pulse::poll_interval_us()));
  PG_RETURN_VOID();
}
