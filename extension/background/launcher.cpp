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
constexpr int64 kMaxIdleUs = 60 * USECS_PER_SEC;
// Lead time of a maintainer's start before a requested sweep, so that the sweep is on time.
constexpr int64 kStartLeadUs = 150 * kMsUs;
// Pause after the first failure; each further failure doubles it.
constexpr int64 kFirstPauseUs = 250 * kMsUs;
constexpr int kMaxDoublings = 7;
// Fewer doublings for failures detected without starting a process, so that they are checked more
// often.
constexpr int kMaxCheapDoublings = 4;
// The datconnlimit of a database whose DROP was interrupted.
constexpr int kInvalidConnectionLimit = -2;

enum class Trouble { kNone, kUnknown, kClosed, kNoPlace, kWanted, kNoProcess };

// One database listed in pulse.databases.
struct ServedDatabase {
  char name[NAMEDATALEN];
  Oid oid;
  DatabaseState* database;
  BackgroundWorkerHandle* maintainer;  // handle of the running maintainer; NULL: none
  int64 start_at;    // next start on the monotonic clock, unless a sweep is requested earlier
  int failures;      // consecutive failures
  bool is_off;       // sweeps are switched off there, so no request counts
  int state;         // the last Trouble or MaintainerEnd, as a serving state
  int logged_state;  // the serving state logged last
};

ServedDatabase databases[kMaxServed];
int database_count = 0;
MemoryContext pass_context = nullptr;
bool must_read_databases = true;

// Half of max_worker_processes, so that other extensions get processes too.
int max_maintainers() { return Max(1, (max_worker_processes - 1) / 2); }

// The number of databases up to which each may keep its maintainer.
int max_lasting_maintainers() { return Max(1, max_worker_processes / 8); }

int maintainers_at_work() {
  int count = 0;
  for (int i = 0; i < database_count; i++) count += databases[i].maintainer != nullptr;
  return count;
}

void set_serving(ServedDatabase* entry, bool is_serving) {
  if (entry->database)
    pg_atomic_write_u32(&entry->database->maintainer.is_serving, is_serving ? 1 : 0);
}

int serving_state(Trouble trouble) { return static_cast<int>(trouble); }

constexpr int kFirstEndState = 100;

int serving_state(MaintainerEnd end) { return kFirstEndState + static_cast<int>(end); }

// Sets the serving state. True when it is to be logged: it differs from the logged entry and is not
// transient.
bool set_state_to_log(ServedDatabase* entry, int state) {
  if (entry->state != state) entry->failures = 0;
  entry->state = state;
  if (state == entry->logged_state || state == serving_state(Trouble::kWanted) ||
      state == serving_state(MaintainerEnd::kBusy))
    return false;
  // A maintainer that has just ended may still occupy its worker slot.
  if (state == serving_state(Trouble::kNoProcess) && entry->failures < 2) return false;
  entry->logged_state = state;
  return true;
}

void report_trouble(const ServedDatabase* entry, Trouble trouble) {
  switch (trouble) {
    case Trouble::kUnknown:
      ereport(LOG, (errmsg("database \"%s\" in pulse.databases does not exist", entry->name),
                    errhint("Create it, or remove it from pulse.databases.")));
      break;
    case Trouble::kClosed:
      ereport(LOG, (errmsg("database \"%s\" in pulse.databases does not accept connections",
                           entry->name),
                    errhint("Remove it from pulse.databases.")));
      break;
    case Trouble::kNoPlace:
      ereport(LOG, (errmsg("no pg_pulse shared memory is left for database \"%s\"", entry->name)));
      break;
    case Trouble::kNoProcess:
      ereport(
          LOG,
          (errmsg("no background worker slot is free for pg_pulse maintenance of database \"%s\"",
                  entry->name),
           errhint("Raise max_worker_processes.")));
      break;
    default: break;
  }
}

void report_end(const ServedDatabase* entry, MaintainerEnd end) {
  switch (end) {
    case MaintainerEnd::kRan:
      ereport(LOG, (errmsg("pg_pulse maintenance started in database \"%s\"", entry->name)));
      break;
    case MaintainerEnd::kOff:
      ereport(LOG, (errmsg("pg_pulse sweeps are switched off in database \"%s\"", entry->name)));
      break;
    case MaintainerEnd::kNotInstalled:
      ereport(LOG,
              (errmsg("database \"%s\" in pulse.databases has no extension pg_pulse", entry->name),
               errhint("Run CREATE EXTENSION pg_pulse there, or remove it from pulse.databases.")));
      break;
    case MaintainerEnd::kDied:
      ereport(LOG, (errmsg("pg_pulse maintenance process of database \"%s\" died", entry->name),
                    errhint("See earlier log entries of that process.")));
      break;
    default: break;
  }
}

void pause_after_failure(ServedDatabase* entry, int64 now, int max_doublings) {
  entry->start_at = now + (kFirstPauseUs << Min(entry->failures, max_doublings));
  entry->failures++;
  set_serving(entry, false);
}

void handle_trouble(ServedDatabase* entry, Trouble trouble, int64 now) {
  if (set_state_to_log(entry, serving_state(trouble))) report_trouble(entry, trouble);
  pause_after_failure(entry, now, kMaxCheapDoublings);
}

// The maintainer has ended: logs how, and sets when the next entry starts.
void handle_end(ServedDatabase* entry, int64 now) {
  pfree(entry->maintainer);
  entry->maintainer = nullptr;
  MaintainerState* state = &entry->database->maintainer;
  auto end = static_cast<MaintainerEnd>(pg_atomic_read_u32(&state->end));
  if (set_state_to_log(entry, serving_state(end))) report_end(entry, end);
  entry->is_off = end == MaintainerEnd::kOff;
  if (end == MaintainerEnd::kRan || end == MaintainerEnd::kOff) {
    entry->failures = 0;
    entry->start_at = static_cast<int64>(pg_atomic_read_u64(&state->next_start));
    set_serving(entry, end == MaintainerEnd::kRan);
    return;
  }
  pause_after_failure(entry, now, end == MaintainerEnd::kBusy ? kMaxCheapDoublings : kMaxDoublings);
}

// Logs the first sweep of a maintainer, also the first after a failure. After a failed or died
// maintainer, the next entry has to end well first.
void report_first_sweep(ServedDatabase* entry) {
  bool is_doubtful = entry->state == serving_state(MaintainerEnd::kFailed) ||
                     entry->state == serving_state(MaintainerEnd::kDied);
  if (is_doubtful || !pg_atomic_read_u32(&entry->database->maintainer.has_swept)) return;
  if (set_state_to_log(entry, serving_state(MaintainerEnd::kRan)))
    report_end(entry, MaintainerEnd::kRan);
  set_serving(entry, true);
}

// Looks the database up each time, because it may have been dropped and created again. It scans
// pg_database, because a process without a database may lack the relcache entries for an index
// scan.
Trouble find_database(ServedDatabase* entry) {
  Oid before = entry->oid;
  entry->oid = InvalidOid;
  bool is_closed = false;
  Relation pg_database = table_open(DatabaseRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_database_datname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum(entry->name));
  SysScanDesc scan = systable_beginscan(pg_database, DatabaseNameIndexId,
                                        criticalSharedRelcachesBuilt, nullptr, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    auto* row = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
    entry->oid = row->oid;
    is_closed = !row->datallowconn || row->datconnlimit == kInvalidConnectionLimit;
  }
  systable_endscan(scan);
  table_close(pg_database, AccessShareLock);
  if (!OidIsValid(entry->oid)) return Trouble::kUnknown;
  // A new database of the same name is logged anew.
  if (entry->oid != before) entry->logged_state = 0;
  if (is_closed) return Trouble::kClosed;
  entry->database = database_state(entry->oid);
  if (!entry->database) return Trouble::kNoPlace;
  return database_is_wanted(entry->oid) ? Trouble::kWanted : Trouble::kNone;
}

void try_to_start(ServedDatabase* entry, int64 now) {
  entry->database = nullptr;
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  Trouble trouble = find_database(entry);
  CommitTransactionCommand();
  if (trouble == Trouble::kNone) {
    pg_atomic_write_u32(&entry->database->maintainer.end,
                        static_cast<uint32>(MaintainerEnd::kDied));
    pg_atomic_write_u32(&entry->database->maintainer.has_swept, 0);
    MemoryContextSwitchTo(TopMemoryContext);
    entry->maintainer = start_maintainer(entry->oid, entry->name);
    MemoryContextSwitchTo(pass_context);
    if (entry->maintainer) return;
    trouble = Trouble::kNoProcess;
  }
  handle_trouble(entry, trouble, now);
}

bool maintainer_has_ended(const ServedDatabase* entry) {
  pid_t pid;
  BgwHandleStatus status = GetBackgroundWorkerPid(entry->maintainer, &pid);
  return status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED;
}

// When the next maintainer of this database is to start.
int64 start_time(const ServedDatabase* entry, int64 now) {
  if (entry->failures > 0 || entry->is_off || !entry->database) return entry->start_at;
  return Min(entry->start_at, now + sweep_due_in_us(entry->database) - kStartLeadUs);
}

// Starts the maintainers that are due, in turn; returns the time until the next entry is due.
int64 serve_databases() {
  static unsigned first = 0;
  int64 now = monotonic_us();
  int64 next = now + (database_count > 0 ? kMaxIdleUs : USECS_PER_DAY);
  bool is_crowded = false;
  for (int i = 0; i < database_count; i++) {
    ServedDatabase* entry =
        &databases[(first + static_cast<unsigned>(i)) % static_cast<unsigned>(database_count)];
    if (entry->maintainer && maintainer_has_ended(entry)) handle_end(entry, now);
    if (entry->maintainer) {
      report_first_sweep(entry);
      continue;  // the maintainer's end sets this process's latch
    }
    int64 at = start_time(entry, now);
    if (at <= now && maintainers_at_work() < max_maintainers()) {
      try_to_start(entry, now);
      at = entry->maintainer ? next : entry->start_at;
    } else if (at <= now) {
      is_crowded = true;
      at = next;
    }
    next = Min(next, at);
  }
  first++;
  pg_atomic_write_u32(&shared()->is_crowded, is_crowded ? 1 : 0);
  for (int i = 0; is_crowded && i < database_count; i++)
    if (databases[i].maintainer) wake_maintainer(databases[i].database);
  return Max(next - monotonic_us(), 0);
}

// Lets every database be tried again at once.
void retry_all() {
  for (int i = 0; i < database_count; i++) {
    databases[i].failures = 0;
    databases[i].start_at = 0;
  }
}

bool is_listed(List* names, const char* name) {
  ListCell* cell;
  foreach (cell, names)
    if (strcmp(static_cast<char*>(lfirst(cell)), name) == 0) return true;
  return false;
}

bool is_served(const char* name) {
  for (int i = 0; i < database_count; i++)
    if (strcmp(databases[i].name, name) == 0) return true;
  return false;
}

// The maintainer of an unlisted database ends by itself soon.
void drop_unlisted(List* names) {
  int kept = 0;
  for (int i = 0; i < database_count; i++) {
    if (is_listed(names, databases[i].name)) {
      databases[kept++] = databases[i];
      continue;
    }
    set_serving(&databases[i], false);
    if (databases[i].maintainer) pfree(databases[i].maintainer);
  }
  database_count = kept;
}

void add_listed(List* names) {
  ListCell* cell;
  foreach (cell, names) {
    const char* name = static_cast<char*>(lfirst(cell));
    if (is_served(name)) continue;
    if (database_count == kMaxServed) {
      ereport(LOG, (errmsg("pg_pulse maintains at most %d databases", kMaxServed),
                    errdetail("Database \"%s\" is ignored.", name)));
      continue;
    }
    ServedDatabase* entry = &databases[database_count++];
    memset(entry, 0, sizeof(*entry));
    strlcpy(entry->name, name, NAMEDATALEN);
  }
}

void read_databases() {
  List* names = NIL;
  char* list = pstrdup(settings.databases ? settings.databases : "");
  if (!SplitGUCList(list, ',', &names)) names = NIL;
  drop_unlisted(names);
  add_listed(names);
  pg_atomic_write_u32(&shared()->may_stay, database_count <= max_lasting_maintainers() ? 1 : 0);
  retry_all();
}

// An error here concerns no single database: shared catalogs cannot be read, or memory is
// exhausted.
int64 serve_databases_safely() {
  volatile int64 wait_us = 0;
  PG_TRY();
  {
    if (must_read_databases) read_databases();
    must_read_databases = false;
    wait_us = serve_databases();
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
  for (int i = 0; i < database_count; i++) set_serving(&databases[i], false);
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
  // Starts on a primary only; on a standby as soon as it is promoted.
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
    if (pg_atomic_exchange_u32(&all->must_retry, 0)) pulse::retry_all();
    int64 wait_us = pulse::serve_databases_safely();
    if (pulse::sleep_in_background(wait_us)) pulse::must_read_databases = true;
  }
}
