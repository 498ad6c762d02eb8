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

// A waiter woken longer ago than this may have stopped, so another waiter is woken.
constexpr int64 kClaimSoonUs = 10000;

Waiter* own_slot = nullptr;

WaiterState state_of(uint64 word) { return static_cast<WaiterState>(word & kStateMask); }

uint32 spare_of(uint64 word) { return static_cast<uint32>((word >> kSpareShift) & kMaxSpare); }

uint64 next_word(uint64 word, WaiterState state) {
  return (word & ~(kSequence - 1)) + kSequence + state;
}

bool switch_waiter(Waiter* waiter, WaiterState from, WaiterState to) {
  uint64 word = pg_atomic_read_u64(&waiter->word);
  return state_of(word) == from &&
         pg_atomic_compare_exchange_u64(&waiter->word, &word, next_word(word, to));
}

void set_latch_of(int32 backend) { SetLatch(&ProcGlobal->allProcs[backend].procLatch); }

// Wakes the waiter unless its word has changed since it was read.
bool wake(Waiter* waiter, uint64 word, uint64 given) {
  int32 backend = waiter->backend;
  if (!pg_atomic_compare_exchange_u64(&waiter->word, &word, next_word(word, kWoken) + given))
    return false;
  pg_atomic_write_u64(&waiter->woken_at, static_cast<uint64>(monotonic_us()));
  set_latch_of(backend);
  return true;
}

// Gives one more job to a waiter that was woken a moment ago.
bool give_more(Waiter* waiter, uint64 word, int64 now) {
  auto since = static_cast<int64>(pg_atomic_read_u64(&waiter->woken_at));
  return spare_of(word) > 0 && now - since < kClaimSoonUs &&
         pg_atomic_compare_exchange_u64(&waiter->word, &word, word - kSpare);
}

bool is_waiting_here(Waiter* waiter) {
  return state_of(pg_atomic_read_u64(&waiter->word)) == kWaiting &&
         waiter->database == MyDatabaseId;
}

// --- timer owners --------------------------------------------------------------------------------

// Timer owners per task. One is not enough: a waiter that was woken for a job, or has stopped,
// handles no timers.
constexpr int kTimerOwners = 4;

enum class Rank { kNone, kFew, kLast };

// Counts the waiters of these tasks in slot order.
struct Ranks {
  uint64 open;  // tasks with too few timer owners so far
  uint8 count[kTaskBits];

  explicit Ranks(uint64 tasks) : open(tasks), count() {}

  // kFew: this waiter is a timer owner of a task. kLast: it is the last one that a task needs.
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

// Sets the latches of the waiters of these tasks that have at least this rank.
void signal_ranked(uint64 tasks, Rank least) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  Ranks ranks(tasks);
  for (int i = 0; i < all->waiters && ranks.open; i++)
    if (is_waiting_here(&waiters[i]) && ranks.enter(waiters[i].tasks) >= least)
      set_latch_of(waiters[i].backend);
}

// Wakes the waiter that becomes the fourth timer owner of these tasks.
void signal_successors(uint64 tasks) {
  DatabaseState* database = this_database_if_known();
  if (!database || pg_atomic_read_u32(&shared()->waiting) == 0) return;
  signal_ranked(tasks_with_due_jobs(database, tasks), Rank::kLast);
}

// Called after the slot was freed.
void after_slot_freed() {
  uint64 tasks = own_slot->tasks;
  own_slot = nullptr;
  pg_atomic_fetch_sub_u32(&shared()->waiting, 1);
  signal_successors(tasks);
}

// --- giving jobs to waiters ----------------------------------------------------------------------

// Jobs still to be given to one wake group.
struct WakeDemand {
  uint64 wake_group;
  uint64 task_bits;
  uint32 jobs[kTaskBits];
};
constexpr int kMaxDemands = 8;

struct WakeOffer {
  const uint32* jobs;
  uint64 task_bits;
  bool any;
  bool is_handed_over;
  int wake_groups;
  WakeDemand demands[kMaxDemands];
};

// Wake groups beyond the limit share one demand that is never met, so all their waiters wake.
WakeDemand* demand_of(WakeOffer* offer, uint64 wake_group) {
  for (int i = 0; i < offer->wake_groups; i++)
    if (offer->demands[i].wake_group == wake_group || i == kMaxDemands - 1)
      return &offer->demands[i];
  WakeDemand* demand = &offer->demands[offer->wake_groups++];
  demand->wake_group = wake_group;
  demand->task_bits = offer->task_bits;
  memcpy(demand->jobs, offer->jobs, sizeof(demand->jobs));
  if (offer->wake_groups == kMaxDemands) memset(demand->jobs, 0xff, sizeof(demand->jobs));
  return demand;
}

void take_from(WakeDemand* demand, int bit) {
  if (--demand->jobs[bit] == 0) demand->task_bits &= ~(UINT64CONST(1) << bit);
}

// Gives one job to each waiter in this state.
void give_in_state(WakeOffer* offer, WaiterState state, int64 now) {
  SharedState* all = shared();
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters && (offer->task_bits || offer->any); i++) {
    Waiter* waiter = &waiters[i];
    uint64 word = pg_atomic_read_u64(&waiter->word);
    if (state_of(word) != state || waiter->database != MyDatabaseId) continue;
    WakeDemand* demand = demand_of(offer, waiter->wake_group);
    uint64 served = waiter->tasks & demand->task_bits;
    bool is_any = !served && offer->any && waiter->tasks && state == kWaiting;
    if (!served && !is_any) continue;
    uint64 given =
        kIsGiven + (offer->is_handed_over ? kIsHandedOver : (waiter->capacity - 1) * kSpare);
    if (!(state == kWoken ? give_more(waiter, word, now) : wake(waiter, word, given))) continue;
    if (served)
      take_from(demand, __builtin_ctzll(served));
    else
      offer->any = false;
  }
}

void give_jobs(WakeOffer* offer) {
  pg_memory_barrier();
  if (pg_atomic_read_u32(&shared()->waiting) == 0) return;
  // A handed-over wake-up goes to a sleeping waiter: waiters already woken claim anyway.
  if (!offer->is_handed_over) give_in_state(offer, kWoken, monotonic_us());
  give_in_state(offer, kWaiting, 0);
}

bool is_met(const WakeOffer* offer, uint64 wake_group, uint64 tasks) {
  for (int i = 0; i < offer->wake_groups && i < kMaxDemands - 1; i++)
    if (offer->demands[i].wake_group == wake_group) return !(offer->demands[i].task_bits & tasks);
  return !(offer->task_bits & tasks);
}

// Increments the generations of the wake groups of which too few waiters were woken. True when any
// was.
bool bump_unmet(DatabaseState* database, const WakeOffer* offer) {
  bool any = false;
  for (WakeGroup& slot : database->wake_groups) {
    if (pg_atomic_read_u32(&slot.users) == 0) continue;
    if (is_met(offer, pg_atomic_read_u64(&slot.wake_group), pg_atomic_read_u64(&slot.tasks)))
      continue;
    pg_atomic_fetch_add_u64(&slot.generation, 1);
    any = true;
  }
  return any;
}

void wake_for_jobs(DatabaseState* database, const uint32* jobs, uint64 task_bits, bool any,
                   bool is_handed_over) {
  WakeOffer offer;
  offer.jobs = jobs;
  offer.task_bits = task_bits;
  offer.any = any;
  offer.is_handed_over = is_handed_over;
  offer.wake_groups = 0;
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((task_bits >> bit) & 1) pg_atomic_fetch_add_u64(&database->generation[bit], 1);
  give_jobs(&offer);
  // A waiter that entered meanwhile may have checked the generation before it was incremented.
  if (task_bits && bump_unmet(database, &offer)) give_jobs(&offer);
}

}  // namespace

// --- the slot of this session --------------------------------------------------------------------

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
    if (!switch_waiter(&waiters[i], kFree, kTaken)) continue;
    own_slot = &waiters[i];
    own_slot->database = MyDatabaseId;
    own_slot->backend = own_proc_number();
    own_slot->capacity = static_cast<uint32>(Min(Max(terms.capacity, 1), kMaxSpare));
    own_slot->tasks = terms.tasks;
    own_slot->wake_group = terms.wake_group;
    own_slot->worker_id = terms.worker_id;
    pg_atomic_fetch_add_u32(&all->waiting, 1);
    switch_waiter(own_slot, kTaken, kWaiting);
    return true;
  }
  return false;
}

bool is_woken() { return own_slot && state_of(pg_atomic_read_u64(&own_slot->word)) == kWoken; }

bool has_slot(int64* worker_id) {
  if (own_slot) *worker_id = own_slot->worker_id;
  return own_slot != nullptr;
}

bool is_among_first_waiters(int count) {
  if (!own_slot) return true;
  int before = 0;
  for (Waiter* other = waiter_array(shared()); other < own_slot && before < count; other++)
    if (is_waiting_here(other)) before++;
  return before < count;
}

uint64 tasks_timed_here(uint64 tasks) {
  if (!own_slot) return tasks;
  Ranks ranks(tasks);
  for (Waiter* other = waiter_array(shared()); other < own_slot && ranks.open; other++)
    if (is_waiting_here(other)) (void)ranks.enter(other->tasks);
  return ranks.open;
}

void stop_waiting() {
  if (!own_slot) return;
  uint64 word = pg_atomic_read_u64(&own_slot->word);
  while (!(word & kIsGiven))
    if (pg_atomic_compare_exchange_u64(&own_slot->word, &word, next_word(word, kFree))) {
      after_slot_freed();
      return;
    }
}

Wake consume_wakeup() {
  Wake wake = {};
  if (!own_slot) return wake;
  uint64 word = pg_atomic_read_u64(&own_slot->word);
  while (!pg_atomic_compare_exchange_u64(&own_slot->word, &word, next_word(word, kFree))) {
  }
  if (word & kIsGiven)
    wake = {own_slot->tasks, own_slot->wake_group, own_slot->capacity - spare_of(word),
            (word & kIsHandedOver) != 0};
  after_slot_freed();
  return wake;
}

void hand_over_wakeup(const Wake& wake) {
  DatabaseState* database = this_database_if_known();
  if (!database || wake.jobs == 0) return;
  uint32 jobs[kTaskBits];
  for (uint32& count : jobs) count = wake.jobs;
  wake_for_jobs(database, jobs, wake.tasks, true, true);
}

void wake_waiters(DatabaseState* database, const uint32* jobs, uint64 task_bits, bool any) {
  wake_for_jobs(database, jobs, task_bits, any, false);
}

void wake_worker(int64 worker_id) {
  SharedState* all = shared();
  if (!all) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    uint64 word = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(word) == kWaiting && waiters[i].database == MyDatabaseId &&
        waiters[i].worker_id == worker_id)
      wake(&waiters[i], word, 0);
  }
}

void wake_all_waiters() {
  SharedState* all = shared();
  pg_memory_barrier();
  if (pg_atomic_read_u32(&all->waiting) == 0) return;
  Waiter* waiters = waiter_array(all);
  for (int i = 0; i < all->waiters; i++) {
    uint64 word = pg_atomic_read_u64(&waiters[i].word);
    if (state_of(word) == kWaiting && waiters[i].database == MyDatabaseId)
      wake(&waiters[i], word, 0);
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
