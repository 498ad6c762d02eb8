#include "wake/waiters.hpp"

#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

// Layout of Waiter.word: state, further jobs, two flags, sequence number.
constexpr uint64 kStateMask = 3;
constexpr int kSpareShift = 2;
constexpr uint64 kMaxSpare = 0x3fff;
constexpr uint64 kSpare = UINT64CONST(1) << kSpareShift;
constexpr uint64 kIsGiven = UINT64CONST(1) << 16;  // the waiter was woken for a job
constexpr uint64 kIsHandedOver = UINT64CONST(1) << 17;
constexpr uint64 kSequence = UINT64CONST(1) << 18;

// After a wake-up older than this time, the waiter may have stopped, so a commit wakes another
// waiter.
constexpr int64 kClaimSoonUs = 10000;

// After this time without a claim, another waiter gets the same wake-up.
constexpr int64 kTakeByUs = 100000;
// The number of waiters that check for unused wake-ups. A single checker may be woken for a job
// before the check.
constexpr int kWatchers = 2;

Waiter* own_entry = nullptr;

WaiterState state_of(uint64 word) { return static_cast<WaiterState>(word & kStateMask); }

uint32 spare_of(uint64 word) { return static_cast<uint32>((word >> kSpareShift) & kMaxSpare); }

// A handed-over wake-up counts as one job, because commits gave none of the waiter's capacity to
// other jobs.
uint32 jobs_given(uint32 capacity, uint64 word) {
  return word & kIsHandedOver ? 1 : capacity - spare_of(word);
}

uint64 next_word(uint64 word, WaiterState state) {
  return (word & ~(kSequence - 1)) + kSequence + state;
}

bool switch_waiter(Waiter* waiter, WaiterState from, WaiterState to) {
  uint64 word = pg_atomic_read_u64(&waiter->word);
  return state_of(word) == from &&
         pg_atomic_compare_exchange_u64(&waiter->word, &word, next_word(word, to));
}

void set_latch_of(int32 backend) { SetLatch(&ProcGlobal->allProcs[backend].procLatch); }

// Wakes the waiter. False if the waiter's word has changed since the caller read `word`.
bool wake(Waiter* waiter, uint64 word, uint64 given) {
  int32 backend = waiter->backend;
  if (!pg_atomic_compare_exchange_u64(&waiter->word, &word, next_word(word, kWoken) + given))
    return false;
  pg_atomic_write_u64(&waiter->woken_at, static_cast<uint64>(monotonic_us()));
  set_latch_of(backend);
  return true;
}

// Gives another job to a waiter that a commit woke a moment ago. False if the waiter may have
// stopped, or has no capacity left.
bool give_more(Waiter* waiter, uint64 word) {
  if (spare_of(word) == 0) return false;
  auto since = static_cast<int64>(pg_atomic_read_u64(&waiter->woken_at));
  return monotonic_us() - since < kClaimSoonUs &&
         pg_atomic_compare_exchange_u64(&waiter->word, &word, word - kSpare);
}

// Calls use(waiter, word) for the waiters of this database in this state, in the order of their
// entries, until use() returns false.
template <typename Use>
void for_each_waiter(WaiterState state, Use use) {
  SharedState* all = shared();
  pg_memory_barrier();
  if (!all || pg_atomic_read_u32(&all->waiting) == 0) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    uint64 word = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(word) == state && waiters[i].database == MyDatabaseId && !use(&waiters[i], word))
      return;
  }
}

// Signals the waiter that becomes the last timer owner because this entry was freed.
void signal_successor(const Waiter* freed) {
  DatabaseState* database = this_database_if_known();
  if (!database || earliest_due(database) == kNever) return;
  int count = 0;
  for_each_waiter(kWaiting, [freed, &count](Waiter* waiter, uint64) {
    if (++count < kTimerOwners) return true;
    if (waiter > freed) set_latch_of(waiter->backend);
    return false;
  });
}

// Called after the entry was freed.
void after_entry_freed() {
  Waiter* freed = own_entry;
  own_entry = nullptr;
  pg_atomic_fetch_sub_u32(&shared()->waiting, 1);
  signal_successor(freed);
}

// --- giving jobs to waiters ----------------------------------------------------------------------

// Jobs still to be given to one wake group.
struct WakeDemand {
  uint64 wake_group;
  JobCounts left;
};
constexpr int kMaxDemands = 8;

struct WakeOffer {
  const JobCounts& jobs;
  bool any;
  bool is_handed_over;
  bool has_woken;  // a waiter has received a wake-up
  int wake_groups;
  WakeDemand demands[kMaxDemands];  // the first wake_groups elements are in use

  WakeOffer(const JobCounts& jobs, bool any, bool is_handed_over)
      : jobs(jobs), any(any), is_handed_over(is_handed_over), has_woken(false), wake_groups(0) {}
};

// The last demand stands for all wake groups beyond the limit, and is never met, so all waiters of
// these groups wake.
WakeDemand* demand_of(WakeOffer* offer, uint64 wake_group) {
  for (int i = 0; i < offer->wake_groups; i++)
    if (offer->demands[i].wake_group == wake_group || i == kMaxDemands - 1)
      return &offer->demands[i];
  WakeDemand* demand = &offer->demands[offer->wake_groups++];
  *demand = {wake_group, offer->jobs};
  if (offer->wake_groups == kMaxDemands) memset(demand->left.jobs, 0xff, sizeof(demand->left.jobs));
  return demand;
}

void take_from(JobCounts* left, int bit) {
  if (--left->jobs[bit] == 0) left->bits &= ~(UINT64CONST(1) << bit);
}

// Gives one job to each waiter in this state.
void give_in_state(WakeOffer* offer, WaiterState state) {
  for_each_waiter(state, [offer, state](Waiter* waiter, uint64 word) {
    WakeDemand* demand = demand_of(offer, waiter->wake_group);
    uint64 served = waiter->tasks & demand->left.bits;
    if (!served && !(offer->any && waiter->tasks && state == kWaiting)) return true;
    uint64 given =
        kIsGiven + (offer->is_handed_over ? kIsHandedOver : (waiter->capacity - 1) * kSpare);
    if (!(state == kWoken ? give_more(waiter, word) : wake(waiter, word, given))) return true;
    offer->has_woken = true;
    if (served)
      take_from(&demand->left, __builtin_ctzll(served));
    else
      offer->any = false;
    return offer->jobs.bits || offer->any;
  });
}

void give_jobs(WakeOffer* offer) {
  // A handed-over wake-up goes to a sleeping waiter: waiters already woken claim anyway.
  if (!offer->is_handed_over) give_in_state(offer, kWoken);
  give_in_state(offer, kWaiting);
}

bool is_met(const WakeOffer* offer, uint64 wake_group, uint64 tasks) {
  for (int i = 0; i < offer->wake_groups && i < kMaxDemands - 1; i++)
    if (offer->demands[i].wake_group == wake_group) return !(offer->demands[i].left.bits & tasks);
  return !(offer->jobs.bits & tasks);
}

// Increments the generations of the wake groups with too few woken waiters. True when any group had
// too few.
bool bump_unmet(DatabaseState* database, const WakeOffer* offer) {
  bool any = false;
  for (WakeGroup& entry : database->wake_groups) {
    if (pg_atomic_read_u32(&entry.users) == 0) continue;
    if (is_met(offer, pg_atomic_read_u64(&entry.wake_group), pg_atomic_read_u64(&entry.tasks)))
      continue;
    pg_atomic_fetch_add_u64(&entry.generation, 1);
    any = true;
  }
  return any;
}

// Lets waiters check the wake-ups of the next 100 ms. Where the last check was missed, signals more
// waiters.
void watch_wakeups(DatabaseState* database) {
  auto now = static_cast<uint64>(monotonic_us());
  uint64 at = pg_atomic_read_u64(&database->wake_check_due);
  bool is_missed = at < now - kTakeByUs;
  if (at != kNever && !is_missed) return;
  if (pg_atomic_compare_exchange_u64(&database->wake_check_due, &at, now + kTakeByUs))
    signal_waiters(is_missed ? kTimerOwners : kWatchers);
}

void set_latch_at(pg_atomic_uint32* process_field) {
  uint32 process_number = pg_atomic_read_u32(process_field);
  if (process_number != 0) SetLatch(&ProcGlobal->allProcs[process_number - 1].procLatch);
}

}  // namespace

// --- the entry of this session
// --------------------------------------------------------------------

bool enter_waiting(int64 worker_id, uint64 tasks, uint64 wake_group, uint32 capacity) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    if (!switch_waiter(&waiters[i], kFree, kTaken)) continue;
    own_entry = &waiters[i];
    own_entry->database = MyDatabaseId;
    own_entry->backend = own_proc_number();
    own_entry->capacity = static_cast<uint32>(Min(Max(capacity, 1), kMaxSpare));
    own_entry->tasks = tasks;
    own_entry->wake_group = wake_group;
    own_entry->worker_id = worker_id;
    pg_atomic_fetch_add_u32(&all->waiting, 1);
    switch_waiter(own_entry, kTaken, kWaiting);
    return true;
  }
  return false;
}

bool is_woken() { return own_entry && state_of(pg_atomic_read_u64(&own_entry->word)) == kWoken; }

const Waiter* entry_of_session() { return own_entry; }

bool is_among_first_waiters(int count) {
  int before = 0;
  for_each_waiter(kWaiting, [count, &before](Waiter* other, uint64) {
    return other < own_entry && ++before < count;
  });
  return before < count;
}

void stop_waiting() {
  if (!own_entry) return;
  uint64 word = pg_atomic_read_u64(&own_entry->word);
  while (!(word & kIsGiven))
    if (pg_atomic_compare_exchange_u64(&own_entry->word, &word, next_word(word, kFree))) {
      after_entry_freed();
      return;
    }
}

Wake consume_wakeup() {
  if (!own_entry) return {};
  Wake wake = {own_entry->tasks, own_entry->wake_group, own_entry->capacity, false};
  uint64 word = pg_atomic_read_u64(&own_entry->word);
  while (!pg_atomic_compare_exchange_u64(&own_entry->word, &word, next_word(word, kFree))) {
  }
  after_entry_freed();
  if (!(word & kIsGiven)) return {};
  wake.jobs = jobs_given(wake.jobs, word);
  wake.is_handed_over = (word & kIsHandedOver) != 0;
  return wake;
}

void hand_over_wakeup(const Wake& wake) {
  DatabaseState* database = this_database_if_known();
  if (!database || wake.jobs == 0) return;
  JobCounts jobs;
  jobs.bits = wake.tasks;
  for (uint32& count : jobs.jobs) count = wake.jobs;
  wake_waiters(database, jobs, true, true);
}

void wake_waiters(DatabaseState* database, const JobCounts& jobs, bool any, bool is_handed_over) {
  WakeOffer offer(jobs, any, is_handed_over);
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((jobs.bits >> bit) & 1) pg_atomic_fetch_add_u64(&database->generation[bit], 1);
  give_jobs(&offer);
  // A waiter that entered meanwhile may have compared the generation before the increment.
  if (jobs.bits && bump_unmet(database, &offer)) give_jobs(&offer);
  if (offer.has_woken) watch_wakeups(database);
}

void hand_over_untaken(DatabaseState* database) {
  for_each_waiter(kWoken, [database](Waiter* waiter, uint64 word) {
    if (!(word & kIsGiven)) return true;
    auto taken_by = static_cast<int64>(pg_atomic_read_u64(&waiter->woken_at)) + kTakeByUs;
    if (monotonic_us() < taken_by) {
      lower_due(&database->wake_check_due, taken_by);
      return true;
    }
    Wake wake = {waiter->tasks, waiter->wake_group, jobs_given(waiter->capacity, word), false};
    uint64 taken = word & ~(kIsGiven | kMaxSpare * kSpare);
    if (pg_atomic_compare_exchange_u64(&waiter->word, &word, taken)) hand_over_wakeup(wake);
    return true;
  });
}

void wake_worker(int64 worker_id) {
  for_each_waiter(kWaiting, [worker_id](Waiter* waiter, uint64 word) {
    if (waiter->worker_id == worker_id) wake(waiter, word, 0);
    return true;
  });
}

void wake_all_waiters() {
  for_each_waiter(kWaiting, [](Waiter* waiter, uint64 word) {
    wake(waiter, word, 0);
    return true;
  });
}

void signal_waiters(int count) {
  for_each_waiter(kWaiting, [&count](Waiter* waiter, uint64) {
    set_latch_of(waiter->backend);
    return --count > 0;
  });
}

uint64 earliest_due(DatabaseState* database) {
  uint64 earliest = kNever;
  for (pg_atomic_uint64& due : database->next_due) {
    uint64 at = pg_atomic_read_u64(&due);
    earliest = Min(earliest, at);
  }
  return earliest;
}

void wake_launcher() { set_latch_at(&shared()->launcher); }

void request_sweep(DatabaseState* database, TimestampTz at) {
  if (!lower_due(&database->sweep_due, at)) return;
  set_latch_at(&database->maintainer.process);
  wake_launcher();
  signal_waiters();
}

void signal_launcher() {
  DatabaseState* database = this_database();
  if (!shared() || (database && is_served(database))) return;
  pg_atomic_write_u32(&shared()->must_retry, 1);
  wake_launcher();
}

}  // namespace pulse
