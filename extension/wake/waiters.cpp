#include "wake/waiters.hpp"

#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

// Parts of a waiter's word.
constexpr uint64 kStateMask = 3;
constexpr int kSpareShift = 2;
constexpr uint64 kMaxSpare = 0x3fff;
constexpr uint64 kSpare = UINT64CONST(1) << kSpareShift;
constexpr uint64 kIsGiven = UINT64CONST(1) << 16;  // it was woken for a job
constexpr uint64 kIsPassed = UINT64CONST(1) << 17;
constexpr uint64 kSequence = UINT64CONST(1) << 18;

// One who was woken longer ago than this may have stopped: others are woken then.
constexpr int64 kPromptUs = 10000;

Waiter* own = nullptr;

WaiterState state_of(uint64 word) { return static_cast<WaiterState>(word & kStateMask); }

uint32 spare_of(uint64 word) { return static_cast<uint32>((word >> kSpareShift) & kMaxSpare); }

uint64 next_word(uint64 word, WaiterState state) {
  return (word & ~(kSequence - 1)) + kSequence + state;
}

bool turn(Waiter* waiter, WaiterState from, WaiterState to) {
  uint64 word = pg_atomic_read_u64(&waiter->word);
  return state_of(word) == from &&
         pg_atomic_compare_exchange_u64(&waiter->word, &word, next_word(word, to));
}

void set_latch_of(int32 backend) { SetLatch(&ProcGlobal->allProcs[backend].procLatch); }

// Wakes this waiter if it still is the one that was looked at.
bool wake(Waiter* waiter, uint64 seen, uint64 given) {
  int32 backend = waiter->backend;
  if (!pg_atomic_compare_exchange_u64(&waiter->word, &seen, next_word(seen, kWoken) + given))
    return false;
  pg_atomic_write_u64(&waiter->woken_at, static_cast<uint64>(monotonic_us()));
  set_latch_of(backend);
  return true;
}

// Gives one more job to a waiter that was woken a moment ago.
bool give_more(Waiter* waiter, uint64 seen, int64 now) {
  auto since = static_cast<int64>(pg_atomic_read_u64(&waiter->woken_at));
  return spare_of(seen) > 0 && now - since < kPromptUs &&
         pg_atomic_compare_exchange_u64(&waiter->word, &seen, seen - kSpare);
}

bool is_waiting_here(Waiter* waiter) {
  return state_of(pg_atomic_read_u64(&waiter->word)) == kWaiting &&
         waiter->database == MyDatabaseId;
}

// --- who sees to jobs that fall due --------------------------------------------------------------

// Several, because one that was woken for a job, or has stopped, sees to nothing.
constexpr int kTimerOwners = 4;

enum class Rank { kNone, kFew, kLast };

// Counts, in the order of their places, who waits for these tasks.
struct Ranks {
  uint64 open;  // tasks that have not enough yet
  uint8 count[kTaskBits];

  explicit Ranks(uint64 tasks) : open(tasks), count() {}

  // Whether this one is a timer_owner of a task, or even the last one that a task needs.
  Rank enter(uint64 tasks) {
    uint64 served = tasks & open;
    Rank rank = served ? Rank::kFew : Rank::kNone;
    for (; served; served &= served - 1) {
      int bit = __builtin_ctzll(served);
      if (++count[bit] < kTimerOwners) continue;
      open &= ~(UINT64CONST(1) << bit);
      rank = Rank::kLast;
    }
    return rank;
  }
};

// Of those who wait for these tasks, in the order of their places.
void signal_ranked(uint64 tasks, Rank least) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  Ranks ranks(tasks);
  for (int i = 0; i < all->waiters && ranks.open; i++)
    if (is_waiting_here(&waiters[i]) && ranks.enter(waiters[i].tasks) >= least)
      set_latch_of(waiters[i].backend);
}

// Who saw to nothing until now, and comes after those who do.
void signal_successors(uint64 tasks) {
  DatabaseState* database = this_database_if_known();
  if (!database || pg_atomic_read_u32(&shared()->waiting) == 0) return;
  signal_ranked(tasks_with_due_jobs(database, tasks), Rank::kLast);
}

// The place is free already.
void leave_place() {
  uint64 tasks = own->tasks;
  own = nullptr;
  pg_atomic_fetch_sub_u32(&shared()->waiting, 1);
  signal_successors(tasks);
}

// --- what a commit has to give ------------------------------------------------------------------

// What is left to be given to one wake group of waiter.
struct WakeDemand {
  uint64 wake_group;
  uint64 task_bits;
  uint32 jobs[kTaskBits];
};
constexpr int kMaxWakeGroups = 8;

struct WakeOffer {
  const uint32* jobs;
  uint64 task_bits;
  bool any;
  bool is_passed;
  int wake_groups;
  WakeDemand demands[kMaxWakeGroups];
};

// WakeGroups beyond those that are told apart share a demand that is never met: all of them wake.
WakeDemand* demand_of(WakeOffer* offer, uint64 wake_group) {
  for (int i = 0; i < offer->wake_groups; i++)
    if (offer->demands[i].wake_group == wake_group || i == kMaxWakeGroups - 1)
      return &offer->demands[i];
  WakeDemand* demand = &offer->demands[offer->wake_groups++];
  demand->wake_group = wake_group;
  demand->task_bits = offer->task_bits;
  memcpy(demand->jobs, offer->jobs, sizeof(demand->jobs));
  if (offer->wake_groups == kMaxWakeGroups) memset(demand->jobs, 0xff, sizeof(demand->jobs));
  return demand;
}

void take_from(WakeDemand* demand, int bit) {
  if (--demand->jobs[bit] == 0) demand->task_bits &= ~(UINT64CONST(1) << bit);
}

// Gives to those in this state, one job each.
void give_to(WakeOffer* offer, WaiterState state, int64 now) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters && (offer->task_bits || offer->any); i++) {
    Waiter* waiter = &waiters[i];
    uint64 seen = pg_atomic_read_u64(&waiter->word);
    if (state_of(seen) != state || waiter->database != MyDatabaseId) continue;
    WakeDemand* demand = demand_of(offer, waiter->wake_group);
    uint64 served = waiter->tasks & demand->task_bits;
    bool is_any = !served && offer->any && waiter->tasks && state == kWaiting;
    if (!served && !is_any) continue;
    uint64 given = kIsGiven + (offer->is_passed ? kIsPassed : (waiter->capacity - 1) * kSpare);
    if (!(state == kWoken ? give_more(waiter, seen, now) : wake(waiter, seen, given))) continue;
    if (served)
      take_from(demand, __builtin_ctzll(served));
    else
      offer->any = false;
  }
}

void give(WakeOffer* offer) {
  pg_memory_barrier();
  if (pg_atomic_read_u32(&shared()->waiting) == 0) return;
  // What is passed on goes to others than those who were about to claim anyway.
  if (!offer->is_passed) give_to(offer, kWoken, monotonic_us());
  give_to(offer, kWaiting, 0);
}

bool is_met(const WakeOffer* offer, uint64 wake_group, uint64 tasks) {
  for (int i = 0; i < offer->wake_groups && i < kMaxWakeGroups - 1; i++)
    if (offer->demands[i].wake_group == wake_group) return !(offer->demands[i].task_bits & tasks);
  return !(offer->task_bits & tasks);
}

// Of the wake groups of which too few were woken. True when there are any.
bool bump_unmet(DatabaseState* database, const WakeOffer* offer) {
  bool any = false;
  for (WakeGroup& place : database->wake_groups) {
    if (pg_atomic_read_u32(&place.users) == 0) continue;
    if (is_met(offer, pg_atomic_read_u64(&place.wake_group), pg_atomic_read_u64(&place.tasks)))
      continue;
    pg_atomic_fetch_add_u64(&place.generation, 1);
    any = true;
  }
  return any;
}

void tell(DatabaseState* database, const uint32* jobs, uint64 task_bits, bool any, bool is_passed) {
  WakeOffer offer;
  offer.jobs = jobs;
  offer.task_bits = task_bits;
  offer.any = any;
  offer.is_passed = is_passed;
  offer.wake_groups = 0;
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((task_bits >> bit) & 1) pg_atomic_fetch_add_u64(&database->generation[bit], 1);
  give(&offer);
  // Whoever began to wait meanwhile may have looked before.
  if (task_bits && bump_unmet(database, &offer)) give(&offer);
}

}  // namespace

// --- the own place ------------------------------------------------------------------------------

uint64 tasks_with_due_jobs(DatabaseState* database, uint64 tasks) {
  uint64 found = 0;
  for (; tasks; tasks &= tasks - 1) {
    int bit = __builtin_ctzll(tasks);
    if (pg_atomic_read_u64(&database->next_due[bit]) != kNever) found |= UINT64CONST(1) << bit;
  }
  return found;
}

bool enter_waiting(const WaiterTerms& terms) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    if (!turn(&waiters[i], kFree, kTaken)) continue;
    own = &waiters[i];
    own->database = MyDatabaseId;
    own->backend = own_proc_number();
    own->capacity = static_cast<uint32>(Min(Max(terms.capacity, 1), kMaxSpare));
    own->tasks = terms.tasks;
    own->wake_group = terms.wake_group;
    own->worker_id = terms.worker_id;
    pg_atomic_fetch_add_u32(&all->waiting, 1);
    turn(own, kTaken, kWaiting);
    return true;
  }
  return false;
}

bool is_woken() { return own && state_of(pg_atomic_read_u64(&own->word)) == kWoken; }

bool has_place(int64* worker_id) {
  if (own) *worker_id = own->worker_id;
  return own != nullptr;
}

bool is_among_first_waiters(int count) {
  if (!own) return true;
  int before = 0;
  for (Waiter* other = waiter_array(shared()); other < own && before < count; other++)
    if (is_waiting_here(other)) before++;
  return before < count;
}

uint64 tasks_timed_here(uint64 tasks) {
  if (!own) return tasks;
  Ranks ranks(tasks);
  for (Waiter* other = waiter_array(shared()); other < own && ranks.open; other++)
    if (is_waiting_here(other)) (void)ranks.enter(other->tasks);
  return ranks.open;
}

void stop_waiting() {
  if (!own) return;
  uint64 word = pg_atomic_read_u64(&own->word);
  while (!(word & kIsGiven))
    if (pg_atomic_compare_exchange_u64(&own->word, &word, next_word(word, kFree))) {
      leave_place();
      return;
    }
}

Wake consume_wakeup() {
  Wake wake = {};
  if (!own) return wake;
  uint64 word = pg_atomic_read_u64(&own->word);
  while (!pg_atomic_compare_exchange_u64(&own->word, &word, next_word(word, kFree))) {
  }
  if (word & kIsGiven)
    wake = {own->tasks, own->wake_group, own->capacity - spare_of(word), (word & kIsPassed) != 0};
  leave_place();
  return wake;
}

void hand_over_wakeup(const Wake& wake) {
  DatabaseState* database = this_database_if_known();
  if (!database || wake.jobs == 0) return;
  uint32 jobs[kTaskBits];
  for (uint32& count : jobs) count = wake.jobs;
  tell(database, jobs, wake.tasks, true, true);
}

void wake_waiters(DatabaseState* database, const uint32* jobs, uint64 task_bits, bool any) {
  tell(database, jobs, task_bits, any, false);
}

void wake_worker(int64 worker_id) {
  SharedState* all = shared();
  if (!all) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    uint64 seen = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(seen) == kWaiting && waiters[i].database == MyDatabaseId &&
        waiters[i].worker_id == worker_id)
      wake(&waiters[i], seen, 0);
  }
}

void wake_all_waiters() {
  SharedState* all = shared();
  pg_memory_barrier();
  if (pg_atomic_read_u32(&all->waiting) == 0) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    uint64 seen = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(seen) == kWaiting && waiters[i].database == MyDatabaseId)
      wake(&waiters[i], seen, 0);
  }
}

void signal_waiters() {
  SharedState* all = shared();
  pg_memory_barrier();
  if (!all || pg_atomic_read_u32(&all->waiting) == 0) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++)
    if (is_waiting_here(&waiters[i])) set_latch_of(waiters[i].backend);
}

void signal_timer_owners(uint64 tasks) {
  SharedState* all = shared();
  pg_memory_barrier();
  if (!all || pg_atomic_read_u32(&all->waiting) == 0) return;
  signal_ranked(tasks, Rank::kFew);
}

}  // namespace pulse
