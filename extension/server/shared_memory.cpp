#include "server/shared_memory.hpp"

#include "server/compat.hpp"
#include "server/hash.hpp"

namespace pulse {
namespace {

// Without preloading the struct must fit into the slack that the server leaves for small users.
constexpr int kSlackDatabases = 4;
constexpr int kSlackWaiters = 128;

SharedState* state = nullptr;
DatabaseState* own_database = nullptr;
bool unavailable = false;
bool preloaded = false;

// How much there is of what.
struct Extent {
  int databases;
  int waiters;
};

Extent preloaded_extent() { return {kPreloadedDatabases, max_backends()}; }

Size state_size(Extent extent) {
  Size size = offsetof(SharedState, database);
  size = add_size(size, mul_size(extent.databases, sizeof(DatabaseState)));
  return add_size(size, mul_size(extent.waiters, sizeof(Waiter)));
}

void reset_maintainer(MaintainerState* maintainer) {
  pg_atomic_init_u32(&maintainer->process, 0);
  pg_atomic_init_u32(&maintainer->has_swept, 0);
  pg_atomic_init_u32(&maintainer->is_serving, 0);
  pg_atomic_init_u32(&maintainer->end, static_cast<uint32>(MaintainerEnd::kDied));
  pg_atomic_init_u64(&maintainer->next_start, 0);
  pg_atomic_init_u64(&maintainer->last_sweep, 0);
  pg_atomic_init_u64(&maintainer->reported_at, 0);
  pg_atomic_init_u32(&maintainer->reported_sqlstate, 0);
}

// Everything but the oid: the first claim then looks at all queues.
void reset_database(DatabaseState* database) {
  pg_atomic_init_u64(&database->any_generation, 0);
  pg_atomic_init_u64(&database->parked_due, kNever);
  pg_atomic_init_u64(&database->parked_seen, 0);
  pg_atomic_init_u64(&database->sweep_due, kNever);
  for (int i = 0; i < kTaskBits; i++) {
    pg_atomic_init_u64(&database->generation[i], 0);
    pg_atomic_init_u64(&database->next_due[i], kNever);
  }
  for (int i = 0; i < kMarkWords; i++) pg_atomic_init_u64(&database->queue_marks[i], 0);
  reset_maintainer(&database->maintainer);
  pg_atomic_init_u64(&database->reconciled_at, 0);
  pg_atomic_init_u32(&database->job, InvalidOid);
}

// Never reset: sessions count themselves in and out.
void init_wake_group(WakeGroup* place) {
  pg_atomic_init_u32(&place->users, 0);
  pg_atomic_init_u64(&place->wake_group, 0);
  pg_atomic_init_u64(&place->tasks, 0);
  pg_atomic_init_u64(&place->generation, 0);
}

void init_state(SharedState* fresh, Extent extent) {
  fresh->started_at = GetCurrentTimestamp();
  if (!pg_strong_random(&fresh->incarnation, sizeof(fresh->incarnation)))
    fresh->incarnation = static_cast<uint64>(fresh->started_at);
  fresh->incarnation &= PG_INT64_MAX;
  fresh->databases = extent.databases;
  fresh->waiters = extent.waiters;
  pg_atomic_init_u32(&fresh->launcher, 0);
  pg_atomic_init_u32(&fresh->has_news, 0);
  pg_atomic_init_u32(&fresh->is_crowded, 0);
  pg_atomic_init_u32(&fresh->may_stay, 0);
  pg_atomic_init_u32(&fresh->waiting, 0);
  for (int i = 0; i < extent.databases; i++) {
    pg_atomic_init_u32(&fresh->database[i].oid, 0);
    reset_database(&fresh->database[i]);
    for (WakeGroup& place : fresh->database[i].wake_groups) init_wake_group(&place);
  }
  Waiter* waiter = waiter_array(fresh);
  for (int i = 0; i < extent.waiters; i++) {
    pg_atomic_init_u64(&waiter[i].word, kFree);
    pg_atomic_init_u64(&waiter[i].woken_at, 0);
  }
}

// The slack may be used up: then this backend polls, and says so once.
void take_slack() {
  Extent extent = {kSlackDatabases, kSlackWaiters};
  state =
      static_cast<SharedState*>(area_of_slack("pg_pulse", state_size(extent), [](void* area, Size) {
        init_state(static_cast<SharedState*>(area), {kSlackDatabases, kSlackWaiters});
      }));
  if (state) return;
  unavailable = true;
  ereport(LOG, (errmsg("no shared memory left for pg_pulse: workers of this server poll"),
                errhint("Add pg_pulse to shared_preload_libraries.")));
}

bool is_dropped(Oid database) {
  return !SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
}

// Under the lock: nobody else takes a place over meanwhile, and nobody uses this one.
DatabaseState* find_or_take(SharedState* all, int place, Oid dropped, Oid database) {
  for (int i = 0; i < all->databases; i++)
    if (pg_atomic_read_u32(&all->database[i].oid) == database) return &all->database[i];
  DatabaseState* candidate = &all->database[place];
  if (pg_atomic_read_u32(&candidate->oid) != dropped) return nullptr;
  reset_database(candidate);
  if (on_place_taken_over) on_place_taken_over(place);
  pg_write_barrier();  // who finds it without the lock finds it reset
  pg_atomic_write_u32(&candidate->oid, database);
  return candidate;
}

// Takes over the place of a database that has been dropped. What a look at the catalog may wait for
// is done before the lock is taken.
DatabaseState* take_over_dropped(SharedState* all, Oid database) {
  for (int i = 0; i < all->databases; i++) {
    Oid oid = pg_atomic_read_u32(&all->database[i].oid);
    if (oid == database) return &all->database[i];
    if (!is_dropped(oid)) continue;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    DatabaseState* found = find_or_take(all, i, oid, database);
    LWLockRelease(AddinShmemInitLock);
    if (found) return found;
  }
  return nullptr;
}

void report_no_place() {
  static bool told = false;
  if (told) return;
  told = true;
  ereport(LOG, (errmsg("no place in pg_pulse's shared memory for this database: its workers poll"),
                errhint("With pg_pulse in shared_preload_libraries there are %d places.",
                        kPreloadedDatabases)));
}

}  // namespace

void (*on_place_taken_over)(int place) = nullptr;

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
  if (!state && !unavailable && IsUnderPostmaster) take_slack();
  return state;
}

DatabaseState* database_state(Oid database) {
  SharedState* all = shared();
  if (!all) return nullptr;
  for (int i = 0; i < all->databases; i++) {
    DatabaseState* candidate = &all->database[i];
    uint32 oid = pg_atomic_read_u32(&candidate->oid);
    if (oid == 0 && pg_atomic_compare_exchange_u32(&candidate->oid, &oid, database)) oid = database;
    if (oid == database) return candidate;
  }
  // Who has no database itself has no cache that knows the others.
  bool can_look = IsTransactionState() && OidIsValid(MyDatabaseId);
  return can_look ? take_over_dropped(all, database) : nullptr;
}

DatabaseState* this_database() {
  if (own_database) return own_database;
  own_database = database_state(MyDatabaseId);
  if (!own_database && shared()) report_no_place();
  return own_database;
}

DatabaseState* this_database_if_known() { return own_database; }

int place_of_database(const DatabaseState* database) {
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

int queue_slot(const text* name) {
  uint64 hash = fnv1a(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
  return static_cast<int>((hash ^ (hash >> 32)) % kQueueSlots);
}

int task_bit(const char* identifier, int length) {
  uint64 hash = fnv1a(identifier, length);
  return static_cast<int>((hash ^ (hash >> 32)) % kTaskBits);
}

}  // namespace pulse

PULSE_FUNCTION(pulse_queue_slot) {
  PG_RETURN_INT16(static_cast<int16>(pulse::queue_slot(PG_GETARG_TEXT_PP(0))));
}
