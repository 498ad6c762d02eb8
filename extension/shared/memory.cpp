#include "shared/memory.hpp"

#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// Without preloading, the area must fit into the spare memory that the server reserves for small
// requests.
constexpr int kSlackDatabases = 4;
constexpr int kSlackWaiters = 128;

// The delay after which a maintainer counts as stopped.
constexpr uint64 kOverdueUs = 5 * USECS_PER_SEC;

SharedState* state = nullptr;
DatabaseState* cached_database = nullptr;
bool unavailable = false;
bool preloaded = false;

// Sizes of the arrays in shared memory.
struct Extent {
  int databases;
  int waiters;
};

// A waiter for each backend that can call a function: clients and background workers. (PostgreSQL
// 14 asks before MaxBackends is known.)
Extent preloaded_extent() { return {kPreloadedDatabases, MaxConnections + max_worker_processes}; }

Size state_size(Extent extent) {
  Size size = offsetof(SharedState, database);
  size = add_size(size, mul_size(extent.databases, sizeof(DatabaseState)));
  return add_size(size, mul_size(extent.waiters, sizeof(Waiter)));
}

void init(pg_atomic_uint32* field, uint64 value) {
  pg_atomic_init_u32(field, static_cast<uint32>(value));
}
void init(pg_atomic_uint64* field, uint64 value) { pg_atomic_init_u64(field, value); }

template <typename... Fields>
void init_all(uint64 value, Fields*... fields) {
  (init(fields, value), ...);
}

// Resets all fields but the oid and the wake groups, whose user counts sessions increment and
// decrement. Claims and sweeps then check every queue.
void reset_database(DatabaseState* database) {
  MaintainerState* maintainer = &database->maintainer;
  init_all(0, &maintainer->process, &maintainer->is_serving, &maintainer->seen_at,
           &maintainer->next_start, &maintainer->last_sweep, &maintainer->reported_at,
           &maintainer->reported_sqlstate);
  init_all(static_cast<uint64>(MaintainerEnd::kDied), &maintainer->end);
  init_all(0, &database->first_check, &database->next_bucket, &database->next_parent_bucket,
           &database->any_generation, &database->parked_seen, &database->next_promotion_mark,
           &database->ring_calls);
  init_all(kNever, &database->parked_due, &database->sweep_due, &database->wake_check_due);
  for (int i = 0; i < kTaskBits; i++) {
    init_all(0, &database->generation[i]);
    init_all(kNever, &database->next_due[i]);
  }
  for (pg_atomic_uint64& word : database->promotion_marks) init_all(0, &word);
  for (pg_atomic_uint64& word : database->awaited_parents) init_all(0, &word);
  init_all(0, &database->waiting_levels, &database->freed_levels, &database->rated_levels,
           &database->blocked_sweeps, &database->refused_letters);
  for (LevelGroup& group : database->level_groups) {
    init_all(0, &group.frees, &group.level, &group.next_bucket);
    init_all(kNever, &group.dry_until);
    for (pg_atomic_uint64& word : group.waits) init_all(0, &word);
  }
  for (RateCredit& credit : database->rate_credits) {
    lock_spin(&credit.lock);
    credit.level = 0;
    unlock_spin(&credit.lock);
  }
}

void init_state(SharedState* created, Extent extent) {
  created->started_at = GetCurrentTimestamp();
  if (!pg_strong_random(&created->incarnation, sizeof(created->incarnation)))
    created->incarnation = static_cast<uint64>(created->started_at);
  created->incarnation &= PG_INT64_MAX;
  created->databases = extent.databases;
  created->waiters = extent.waiters;
  init_all(0, &created->launcher, &created->must_retry, &created->may_stay, &created->waiting,
           &created->end_waiting);
  for (EndWaiter& waiter : created->end_waiters) {
    init_all(0, &waiter.process, &waiter.database);
    for (pg_atomic_uint64& id : waiter.ids) init_all(0, &id);
  }
  for (int i = 0; i < extent.databases; i++) {
    DatabaseState* database = &created->database[i];
    init_all(0, &database->oid);
    for (RateCredit& credit : database->rate_credits) SpinLockInit(&credit.lock);
    reset_database(database);
    SpinLockInit(&database->wake_group_lock);
    for (WakeGroup& entry : database->wake_groups)
      init_all(0, &entry.users, &entry.wake_group, &entry.tasks, &entry.generation);
  }
  Waiter* waiter = waiter_array(created);
  for (int i = 0; i < extent.waiters; i++) init_all(0, &waiter[i].word, &waiter[i].woken_at);
}

// If no spare memory is left, this backend polls, and logs the fact once.
void allocate_from_spare() {
  Extent extent = {kSlackDatabases, kSlackWaiters};
  state =
      static_cast<SharedState*>(area_of_slack("pg_pulse", state_size(extent), [](void* area, Size) {
        init_state(static_cast<SharedState*>(area), {kSlackDatabases, kSlackWaiters});
      }));
  if (state) return;
  unavailable = true;
  ereport(LOG, (errmsg("no shared memory is left for pg_pulse; workers of this server poll"),
                errhint("Add pg_pulse to shared_preload_libraries.")));
}

// The entry of the database; for InvalidOid a free entry.
DatabaseState* find_entry(SharedState* all, Oid database) {
  for (int i = 0; i < all->databases; i++)
    if (pg_atomic_read_u32(&all->database[i].oid) == database) return &all->database[i];
  return nullptr;
}

// Hands an entry that is reset to a database. Nothing tells the new owner what falls due, or fell
// due while the server was away; a sweep finds out, and so the first sweep is due at once.
void hand_entry_to(DatabaseState* entry, Oid database) {
  if (settings.sweep_interval_ms > 0) pg_atomic_write_u64(&entry->sweep_due, 0);
  pg_write_barrier();  // a backend that finds the oid without the lock finds the rest
  pg_atomic_write_u32(&entry->oid, database);
}

// Searches again under the lock, because an entry that became free may precede the entry that
// another backend takes.
DatabaseState* take_free_entry(SharedState* all, Oid database) {
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  DatabaseState* entry = find_entry(all, database);
  if (!entry) {
    entry = find_entry(all, InvalidOid);
    if (entry) hand_entry_to(entry, database);
  }
  LWLockRelease(AddinShmemInitLock);
  return entry;
}

// An entry may have been given back, and then taken by another database.
bool is_ours(DatabaseState* entry) { return pg_atomic_read_u32(&entry->oid) == MyDatabaseId; }

// Takes over the entry of a dropped database, which no session uses any more. Catalog lookups may
// wait, so they precede the lock, under which no other backend takes over an entry.
DatabaseState* take_over_dropped(SharedState* all, Oid database) {
  for (int i = 0; i < all->databases; i++) {
    DatabaseState* entry = &all->database[i];
    Oid seen = pg_atomic_read_u32(&entry->oid);
    if (seen == database) return entry;
    if (SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(seen))) continue;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    DatabaseState* found = find_entry(all, database);
    if (!found && pg_atomic_read_u32(&entry->oid) == seen) {
      reset_database(entry);
      if (on_entry_taken_over) on_entry_taken_over(i);
      hand_entry_to(entry, database);
      found = entry;
    }
    LWLockRelease(AddinShmemInitLock);
    if (found) return found;
  }
  return nullptr;
}

void report_no_entry() {
  static bool is_reported = false;
  if (is_reported) return;
  is_reported = true;
  ereport(LOG,
          (errmsg("no pg_pulse shared memory is left for this database; its workers poll"),
           errhint("With pg_pulse in shared_preload_libraries, %d databases have shared memory.",
                   kPreloadedDatabases)));
}

}  // namespace

void (*on_entry_taken_over)(int entry) = nullptr;

void* shared_area(const char* name, Size size, InitArea init) {
  bool found;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  void* area = ShmemInitStruct(name, size, &found);
  if (!found) init(area, size);
  LWLockRelease(AddinShmemInitLock);
  return area;
}

void* area_of_slack(const char* name, Size size, InitArea init) {
  MemoryContext context = CurrentMemoryContext;
  void* volatile area = nullptr;
  PG_TRY();
  { area = shared_area(name, size, init); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    FlushErrorState();
    LWLockReleaseAll();
  }
  PG_END_TRY();
  return area;
}

Size shared_state_size() { return state_size(preloaded_extent()); }

void create_shared_state() {
  state =
      static_cast<SharedState*>(shared_area("pg_pulse", shared_state_size(), [](void* area, Size) {
        init_state(static_cast<SharedState*>(area), preloaded_extent());
      }));
  preloaded = true;
}

bool is_preloaded() { return preloaded; }

SharedState* shared() {
  if (!state && !unavailable && IsUnderPostmaster) allocate_from_spare();
  return state;
}

DatabaseState* database_state(Oid database) {
  SharedState* all = shared();
  if (!all) return nullptr;
  DatabaseState* entry = find_entry(all, database);
  if (!entry) entry = take_free_entry(all, database);
  if (entry) return entry;
  // A process without a database has no syscache to check whether another database was dropped.
  bool can_check = IsTransactionState() && OidIsValid(MyDatabaseId);
  return can_check ? take_over_dropped(all, database) : nullptr;
}

DatabaseState* this_database() {
  if (this_database_if_known()) return cached_database;
  cached_database = database_state(MyDatabaseId);
  if (!cached_database && shared()) report_no_entry();
  return cached_database;
}

DatabaseState* this_database_if_known() {
  return cached_database && is_ours(cached_database) ? cached_database : nullptr;
}

DatabaseState* entry_if_taken() {
  return state && OidIsValid(MyDatabaseId) ? find_entry(state, MyDatabaseId) : nullptr;
}

void give_back_entry() {
  DatabaseState* entry = entry_if_taken();
  if (!entry || pg_atomic_read_u32(&entry->maintainer.process) != 0 ||
      pg_atomic_read_u32(&entry->maintainer.is_serving) != 0)
    return;
  reset_database(entry);
  if (on_entry_taken_over) on_entry_taken_over(entry_number(entry));
  pg_write_barrier();  // the next backend that takes the entry finds the entry reset
  pg_atomic_write_u32(&entry->oid, 0);
}

bool is_served(DatabaseState* database) {
  MaintainerState* maintainer = &database->maintainer;
  if (!pg_atomic_read_u32(&maintainer->is_serving)) return false;
  uint64 expected_at =
      Max(pg_atomic_read_u64(&maintainer->seen_at), pg_atomic_read_u64(&maintainer->next_start));
  return static_cast<uint64>(monotonic_us()) < expected_at + kOverdueUs;
}

int entry_number(const DatabaseState* database) {
  return static_cast<int>(database - state->database);
}

Waiter* waiter_array(SharedState* all) {
  return reinterpret_cast<Waiter*>(&all->database[all->databases]);
}

TimestampTz incarnation_started_at() {
  SharedState* all = shared();
  return all && all->started_at > PgStartTime ? all->started_at : PgStartTime;
}

int64 incarnation() {
  SharedState* all = shared();
  return all ? static_cast<int64>(all->incarnation) : PgStartTime;
}

bool lower_due(pg_atomic_uint64* due, TimestampTz at) {
  uint64 wanted = static_cast<uint64>(at);
  uint64 current = pg_atomic_read_u64(due);
  while (wanted < current)
    if (pg_atomic_compare_exchange_u64(due, &current, wanted)) return true;
  return false;
}

}  // namespace pulse
