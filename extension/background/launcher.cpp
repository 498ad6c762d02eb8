#include "background/launcher.hpp"

#include "background/maintainer.hpp"
#include "background/process.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "wake/background_wake.hpp"

namespace pulse {
namespace {

constexpr int kMaxServed = 64;
constexpr int kRestartAfterS = 1;
constexpr int64 kMsUs = 1000;
constexpr int64 kLookAgainUs = 60 * USECS_PER_SEC;
// A maintainer is started so long before a sweep that was asked for, to be there in time.
constexpr int64 kStartUs = 150 * kMsUs;
// After the first failure, and doubled with each further one.
constexpr int64 kFirstPauseUs = 250 * kMsUs;
constexpr int kMaxDoublings = 7;
// Trouble that shows without starting a process is looked at more often.
constexpr int kMaxCheapDoublings = 4;
constexpr int kInvalidConnectionLimit = -2;  // of a database whose DROP was interrupted

enum class Trouble { kNone, kUnknown, kClosed, kNoPlace, kWanted, kNoProcess };

// One name of pulse.databases.
struct ServedDatabase {
  char name[NAMEDATALEN];
  Oid oid;
  DatabaseState* database;
  BackgroundWorkerHandle* maintainer;  // while there is one
  int64 start_at;                      // on the monotonic clock, if nothing is asked for earlier
  int failures;                        // in a row
  bool is_off;                         // there is nothing to be asked for
  int state;                           // what kept us from it, or how its last maintainer ended
  int told;                            // the state that the log knows
};

ServedDatabase served[kMaxServed];
int served_count = 0;
MemoryContext pass_context = nullptr;
bool must_read_databases = true;

// Half of what the server has for all who want processes.
int max_maintainers() { return Max(1, (max_worker_processes - 1) / 2); }

// Of which so few may be in use all the time.
int max_lasting_maintainers() { return Max(1, max_worker_processes / 8); }

int maintainers_at_work() {
  int count = 0;
  for (int i = 0; i < served_count; i++) count += served[i].maintainer != nullptr;
  return count;
}

void set_serving(ServedDatabase* one, bool is_serving) {
  if (one->database) pg_atomic_write_u32(&one->database->maintainer.is_serving, is_serving ? 1 : 0);
}

int state_of(Trouble trouble) { return static_cast<int>(trouble); }

constexpr int kEnds = 100;

int state_of(MaintainerEnd end) { return kEnds + static_cast<int>(end); }

// True when the state is to be told: it is another than the log knows, and not one that passes.
bool enter_state(ServedDatabase* one, int state) {
  if (one->state != state) one->failures = 0;
  one->state = state;
  if (state == one->told || state == state_of(Trouble::kWanted) ||
      state == state_of(MaintainerEnd::kBusy))
    return false;
  // The place of a maintainer that has just ended may not be free yet.
  if (state == state_of(Trouble::kNoProcess) && one->failures < 2) return false;
  one->told = state;
  return true;
}

void report_trouble(const ServedDatabase* one, Trouble trouble) {
  switch (trouble) {
    case Trouble::kUnknown:
      ereport(LOG, (errmsg("pg_pulse: database \"%s\" does not exist", one->name),
                    errhint("Create it, or take it off pulse.databases.")));
      break;
    case Trouble::kClosed:
      ereport(LOG, (errmsg("pg_pulse: database \"%s\" takes no connections", one->name),
                    errhint("Take it off pulse.databases.")));
      break;
    case Trouble::kNoPlace:
      ereport(LOG, (errmsg("pg_pulse: no place in shared memory for database \"%s\"", one->name)));
      break;
    case Trouble::kNoProcess:
      ereport(LOG, (errmsg("pg_pulse: no process is free to look after database \"%s\"", one->name),
                    errhint("Raise max_worker_processes.")));
      break;
    default: break;
  }
}

void report_end(const ServedDatabase* one, MaintainerEnd end) {
  switch (end) {
    case MaintainerEnd::kRan:
      ereport(LOG, (errmsg("pg_pulse looks after database \"%s\"", one->name)));
      break;
    case MaintainerEnd::kOff:
      ereport(LOG, (errmsg("pg_pulse: sweeps are switched off in database \"%s\"", one->name)));
      break;
    case MaintainerEnd::kNotInstalled:
      ereport(LOG, (errmsg("pg_pulse: database \"%s\" has no extension pg_pulse", one->name),
                    errhint("CREATE EXTENSION pg_pulse there, or take it off pulse.databases.")));
      break;
    case MaintainerEnd::kDied:
      ereport(LOG,
              (errmsg("pg_pulse: the process that looked after database \"%s\" died", one->name),
               errhint("What it said before is in this log.")));
      break;
    default: break;
  }
}

void pause_after_failure(ServedDatabase* one, int64 now, int max_doublings) {
  one->start_at = now + (kFirstPauseUs << Min(one->failures, max_doublings));
  one->failures++;
  set_serving(one, false);
}

void have_trouble(ServedDatabase* one, Trouble trouble, int64 now) {
  if (enter_state(one, state_of(trouble))) report_trouble(one, trouble);
  pause_after_failure(one, now, kMaxCheapDoublings);
}

// Its maintainer has ended: how, and when the next one is to start.
void judge_end(ServedDatabase* one, int64 now) {
  pfree(one->maintainer);
  one->maintainer = nullptr;
  MaintainerState* state = &one->database->maintainer;
  auto end = static_cast<MaintainerEnd>(pg_atomic_read_u32(&state->end));
  if (enter_state(one, state_of(end))) report_end(one, end);
  one->is_off = end == MaintainerEnd::kOff;
  if (end == MaintainerEnd::kRan || end == MaintainerEnd::kOff) {
    one->failures = 0;
    one->start_at = static_cast<int64>(pg_atomic_read_u64(&state->next_start));
    set_serving(one, end == MaintainerEnd::kRan);
    return;
  }
  pause_after_failure(one, now, end == MaintainerEnd::kBusy ? kMaxCheapDoublings : kMaxDoublings);
}

// Its maintainer has swept for the first time, or for the first time after trouble. One whose last
// ended badly has to end well.
void welcome(ServedDatabase* one) {
  bool is_doubtful = one->state == state_of(MaintainerEnd::kFailed) ||
                     one->state == state_of(MaintainerEnd::kDied);
  if (is_doubtful || !pg_atomic_read_u32(&one->database->maintainer.has_swept)) return;
  if (enter_state(one, state_of(MaintainerEnd::kRan))) report_end(one, MaintainerEnd::kRan);
  set_serving(one, true);
}

// Looks the database up anew each time: it may have been dropped, and created again. By a scan,
// because a process without a database may have no cache that knows the way.
Trouble look_up(ServedDatabase* one) {
  Oid before = one->oid;
  one->oid = InvalidOid;
  bool is_closed = false;
  Relation databases = table_open(DatabaseRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_database_datname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum(one->name));
  SysScanDesc scan = systable_beginscan(databases, DatabaseNameIndexId,
                                        criticalSharedRelcachesBuilt, nullptr, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    auto* row = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
    one->oid = row->oid;
    is_closed = !row->datallowconn || row->datconnlimit == kInvalidConnectionLimit;
  }
  systable_endscan(scan);
  table_close(databases, AccessShareLock);
  if (!OidIsValid(one->oid)) return Trouble::kUnknown;
  // Another database of the same name is news.
  if (one->oid != before) one->told = 0;
  if (is_closed) return Trouble::kClosed;
  one->database = database_state(one->oid);
  if (!one->database) return Trouble::kNoPlace;
  return database_is_wanted(one->oid) ? Trouble::kWanted : Trouble::kNone;
}

void try_to_start(ServedDatabase* one, int64 now) {
  one->database = nullptr;
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  Trouble trouble = look_up(one);
  CommitTransactionCommand();
  if (trouble == Trouble::kNone) {
    pg_atomic_write_u32(&one->database->maintainer.end, static_cast<uint32>(MaintainerEnd::kDied));
    pg_atomic_write_u32(&one->database->maintainer.has_swept, 0);
    MemoryContextSwitchTo(TopMemoryContext);
    one->maintainer = start_maintainer(one->oid, one->name);
    MemoryContextSwitchTo(pass_context);
    if (one->maintainer) return;
    trouble = Trouble::kNoProcess;
  }
  have_trouble(one, trouble, now);
}

bool maintainer_has_ended(const ServedDatabase* one) {
  pid_t pid;
  BgwHandleStatus status = GetBackgroundWorkerPid(one->maintainer, &pid);
  return status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED;
}

// When a maintainer of this database is to start next.
int64 start_time(const ServedDatabase* one, int64 now) {
  if (one->failures > 0 || one->is_off || !one->database) return one->start_at;
  return Min(one->start_at, now + sweep_due_in_us(one->database) - kStartUs);
}

// Starts what is due, in turn, and returns for how long there is nothing to do.
int64 look_at_all() {
  static unsigned first = 0;
  int64 now = monotonic_us();
  int64 next = now + (served_count > 0 ? kLookAgainUs : USECS_PER_DAY);
  bool is_crowded = false;
  for (int i = 0; i < served_count; i++) {
    ServedDatabase* one =
        &served[(first + static_cast<unsigned>(i)) % static_cast<unsigned>(served_count)];
    if (one->maintainer && maintainer_has_ended(one)) judge_end(one, now);
    if (one->maintainer) {
      welcome(one);
      continue;  // its end wakes us
    }
    int64 at = start_time(one, now);
    if (at <= now && maintainers_at_work() < max_maintainers()) {
      try_to_start(one, now);
      at = one->maintainer ? next : one->start_at;
    } else if (at <= now) {
      is_crowded = true;
      at = next;
    }
    next = Min(next, at);
  }
  first++;
  pg_atomic_write_u32(&shared()->is_crowded, is_crowded ? 1 : 0);
  for (int i = 0; is_crowded && i < served_count; i++)
    if (served[i].maintainer) wake_maintainer(served[i].database);
  return Max(next - monotonic_us(), 0);
}

// Databases that could not be served are looked at again now.
void forgive_all() {
  for (int i = 0; i < served_count; i++) {
    served[i].failures = 0;
    served[i].start_at = 0;
  }
}

bool is_listed(List* names, const char* name) {
  ListCell* cell;
  foreach (cell, names)
    if (strcmp(static_cast<char*>(lfirst(cell)), name) == 0) return true;
  return false;
}

bool is_served(const char* name) {
  for (int i = 0; i < served_count; i++)
    if (strcmp(served[i].name, name) == 0) return true;
  return false;
}

// A maintainer of a database that is no longer listed ends by itself soon.
void drop_unlisted(List* names) {
  int kept = 0;
  for (int i = 0; i < served_count; i++) {
    if (is_listed(names, served[i].name)) {
      served[kept++] = served[i];
      continue;
    }
    set_serving(&served[i], false);
    if (served[i].maintainer) pfree(served[i].maintainer);
  }
  served_count = kept;
}

void add_listed(List* names) {
  ListCell* cell;
  foreach (cell, names) {
    const char* name = static_cast<char*>(lfirst(cell));
    if (is_served(name)) continue;
    if (served_count == kMaxServed) {
      ereport(LOG, (errmsg("pg_pulse looks after %d databases only", kMaxServed),
                    errdetail("Database \"%s\" is left out.", name)));
      continue;
    }
    ServedDatabase* one = &served[served_count++];
    memset(one, 0, sizeof(*one));
    strlcpy(one->name, name, NAMEDATALEN);
  }
}

void read_databases() {
  List* names = NIL;
  char* list = pstrdup(settings.databases ? settings.databases : "");
  if (!SplitGUCList(list, ',', &names)) names = NIL;
  drop_unlisted(names);
  add_listed(names);
  pg_atomic_write_u32(&shared()->may_stay, served_count <= max_lasting_maintainers() ? 1 : 0);
  forgive_all();
}

// An error here is none of a database's: shared catalogs cannot be read, or there is no memory.
int64 look_without_dying() {
  volatile int64 wait_us = 0;
  PG_TRY();
  {
    if (must_read_databases) read_databases();
    must_read_databases = false;
    wait_us = look_at_all();
  }
  PG_CATCH();
  {
    HOLD_INTERRUPTS();
    EmitErrorReport();
    FlushErrorState();
    AbortCurrentTransaction();
    RESUME_INTERRUPTS();
    wait_us = USECS_PER_SEC * 10;
  }
  PG_END_TRY();
  MemoryContextSwitchTo(pass_context);
  MemoryContextReset(pass_context);
  return wait_us;
}

extern "C" void pulse_launcher_exit(int, Datum) {
  for (int i = 0; i < served_count; i++) set_serving(&served[i], false);
}

}  // namespace

void register_launcher() {
  BackgroundWorker worker;
  memset(&worker, 0, sizeof(worker));
  snprintf(worker.bgw_name, BGW_MAXLEN, "pg_pulse launcher");
  snprintf(worker.bgw_type, BGW_MAXLEN, "pg_pulse launcher");
  snprintf(worker.bgw_library_name, BGW_MAXLEN, "pg_pulse");
  snprintf(worker.bgw_function_name, BGW_MAXLEN, "pulse_launcher_main");
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  // Not on a standby; as soon as it is promoted.
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = kRestartAfterS;
  RegisterBackgroundWorker(&worker);
}

}  // namespace pulse

extern "C" [[noreturn]] PGDLLEXPORT void pulse_launcher_main(Datum);

void pulse_launcher_main(Datum) {
  pulse::start_background_process();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  pgstat_report_activity(STATE_IDLE, nullptr);
  pulse::pass_context =
      AllocSetContextCreate(TopMemoryContext, "pg_pulse launcher", ALLOCSET_DEFAULT_SIZES);
  MemoryContextSwitchTo(pulse::pass_context);
  on_shmem_exit(pulse::pulse_launcher_exit, Int32GetDatum(0));
  pulse::SharedState* all = pulse::shared();
  pulse::publish_process(&all->launcher);
  for (;;) {
    if (pg_atomic_exchange_u32(&all->has_news, 0)) pulse::forgive_all();
    int64 wait_us = pulse::look_without_dying();
    if (pulse::sleep_in_background(wait_us)) pulse::must_read_databases = true;
  }
}
