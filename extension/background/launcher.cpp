#include "background/process.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

constexpr int kMaxListed = 64;
constexpr int kRestartAfterS = 1;
constexpr int64 kMaxIdleUs = 60 * USECS_PER_SEC;
// Lead time of a maintainer's start before a requested sweep, so that the sweep is on time.
constexpr int64 kStartLeadUs = 150 * 1000;
// Pause after the first failure; each further failure doubles the pause.
constexpr int64 kFirstPauseUs = 250 * 1000;
constexpr int kMaxDoublings = 7;
// Fewer doublings for failures detected without starting a process, so that the launcher checks
// more often.
constexpr int kMaxCheapDoublings = 4;
// The datconnlimit of a database whose DROP was interrupted.
constexpr int kInvalidConnectionLimit = -2;

// One database listed in pulse.databases.
struct ServedDatabase {
  char name[NAMEDATALEN];
  bool is_listed;
  Oid oid;
  DatabaseState* database;
  BackgroundWorkerHandle* maintainer;  // handle of the running maintainer; NULL: none
  int64 start_at;  // next start on the monotonic clock, unless a sweep is requested earlier
  int failures;    // consecutive failures
  MaintainerEnd end;
  MaintainerEnd logged;  // the end logged last
};

struct Report {
  MaintainerEnd end;
  const char* message;
  const char* hint;
};

constexpr Report kReports[] = {
    {MaintainerEnd::kRan, "pg_pulse maintenance started in database \"%s\"", nullptr},
    {MaintainerEnd::kOff, "pg_pulse sweeps are switched off in database \"%s\"", nullptr},
    {MaintainerEnd::kDied, "pg_pulse maintenance process of database \"%s\" died",
     "See earlier log entries of that process."},
    {MaintainerEnd::kNotInstalled, "database \"%s\" in pulse.databases has no extension pg_pulse",
     "Run CREATE EXTENSION pg_pulse there, or remove it from pulse.databases."},
    {MaintainerEnd::kUnknown, "database \"%s\" in pulse.databases does not exist",
     "Create it, or remove it from pulse.databases."},
    {MaintainerEnd::kClosed, "database \"%s\" in pulse.databases does not accept connections",
     "Remove it from pulse.databases."},
    {MaintainerEnd::kNoPlace, "no pg_pulse shared memory is left for database \"%s\"", nullptr},
    {MaintainerEnd::kNoProcess,
     "no background worker slot is free for pg_pulse maintenance of database \"%s\"",
     "Raise max_worker_processes."},
};

// The listed databases; while the launcher reads the list, also former databases.
ServedDatabase databases[2 * kMaxListed];
int database_count = 0;

// Half of max_worker_processes, so that other extensions get processes too.
int max_maintainers() { return Max(1, (max_worker_processes - 1) / 2); }

void set_serving(ServedDatabase* entry, bool is_serving) {
  // A place that the launcher gave back may be another database's.
  if (entry->database && pg_atomic_read_u32(&entry->database->oid) == entry->oid)
    pg_atomic_write_u32(&entry->database->maintainer.is_serving, is_serving ? 1 : 0);
}

void report(const ServedDatabase* entry) {
  for (const Report& report : kReports)
    if (report.end == entry->end)
      ereport(LOG, (errmsg_internal(report.message, entry->name),
                    report.hint ? errhint("%s", report.hint) : 0));
}

// Logs an end that is new, and lets waiting clients know whether maintainers sweep in the database.
void note_end(ServedDatabase* entry, MaintainerEnd end) {
  if (entry->end != end) entry->failures = 0;
  entry->end = end;
  // These failures end soon. A maintainer that has just ended may still occupy its worker slot.
  if (end == MaintainerEnd::kBusy || (end == MaintainerEnd::kNoProcess && entry->failures < 2))
    return;
  set_serving(entry, end == MaintainerEnd::kRan);
  if (end != entry->logged) report(entry);
  entry->logged = end;
}

// Sets when the next maintainer starts.
void handle_end(ServedDatabase* entry, MaintainerEnd end, int64 now) {
  note_end(entry, end);
  if (end == MaintainerEnd::kRan || end == MaintainerEnd::kOff) {
    entry->failures = 0;
    entry->start_at =
        static_cast<int64>(pg_atomic_read_u64(&entry->database->maintainer.next_start));
    return;
  }
  bool costs_process = end == MaintainerEnd::kDied || end == MaintainerEnd::kNotInstalled ||
                       end == MaintainerEnd::kFailed;
  int doublings = Min(entry->failures, costs_process ? kMaxDoublings : kMaxCheapDoublings);
  entry->start_at = now + (kFirstPauseUs << doublings);
  entry->failures++;
}

// Returns why no maintainer can start; kNone: a maintainer can start. Searches for the database
// each time, because a session may have dropped it and created it again. The function scans
// pg_database, because a process without a database may lack the relcache entries for an index
// scan.
MaintainerEnd find_database(ServedDatabase* entry) {
  Oid before = entry->oid;
  entry->database = nullptr;
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
  if (!OidIsValid(entry->oid)) return MaintainerEnd::kUnknown;
  // A new database of the same name is logged anew.
  if (entry->oid != before) entry->logged = MaintainerEnd::kNone;
  if (is_closed) return MaintainerEnd::kClosed;
  entry->database = database_state(entry->oid);
  if (!entry->database) return MaintainerEnd::kNoPlace;
  return database_is_wanted(entry->oid) ? MaintainerEnd::kBusy : MaintainerEnd::kNone;
}

BackgroundWorker describe_process(const char* type, const char* function) {
  BackgroundWorker worker = {};
  snprintf(worker.bgw_name, BGW_MAXLEN, "%s", type);
  snprintf(worker.bgw_type, BGW_MAXLEN, "%s", type);
  snprintf(worker.bgw_library_name, BGW_MAXLEN, "pg_pulse");
  snprintf(worker.bgw_function_name, BGW_MAXLEN, "%s", function);
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  // The process starts on a primary only; on a standby as soon as it is promoted.
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  return worker;
}

// Starts a maintainer; the server signals this process when the maintainer ends. NULL when no
// worker slot is free.
BackgroundWorkerHandle* start_maintainer(const ServedDatabase* entry) {
  BackgroundWorker worker = describe_process("pg_pulse maintainer", "pulse_maintainer_main");
  snprintf(worker.bgw_name, BGW_MAXLEN, "pg_pulse maintainer of %s", entry->name);
  worker.bgw_flags |= kInterruptibleProcess;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  worker.bgw_main_arg = ObjectIdGetDatum(entry->oid);
  worker.bgw_notify_pid = MyProcPid;
  BackgroundWorkerHandle* handle = nullptr;
  return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : nullptr;
}

void try_to_start(ServedDatabase* entry, int64 now) {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  MaintainerEnd trouble = find_database(entry);
  CommitTransactionCommand();
  if (trouble == MaintainerEnd::kNone) {
    pg_atomic_write_u32(&entry->database->maintainer.end,
                        static_cast<uint32>(MaintainerEnd::kDied));
    entry->maintainer = start_maintainer(entry);
    if (entry->maintainer) return;
    trouble = MaintainerEnd::kNoProcess;
  }
  handle_end(entry, trouble, now);
}

// When the next maintainer of this database is to start.
int64 start_time(const ServedDatabase* entry, int64 now) {
  // Where sweeps are switched off, no request counts.
  bool is_off = entry->end == MaintainerEnd::kOff;
  if (entry->failures > 0 || is_off || !entry->database) return entry->start_at;
  return Min(entry->start_at, now + sweep_due_in_us(entry->database) - kStartLeadUs);
}

// Notes that the maintainer runs well, or how it ended.
void check_maintainer(ServedDatabase* entry, int64 now) {
  pid_t pid;
  BgwHandleStatus status = GetBackgroundWorkerPid(entry->maintainer, &pid);
  auto end = static_cast<MaintainerEnd>(pg_atomic_read_u32(&entry->database->maintainer.end));
  if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED) {
    pfree(entry->maintainer);
    entry->maintainer = nullptr;
    handle_end(entry, end, now);
  } else if (end == MaintainerEnd::kRan) {
    note_end(entry, end);
  }
}

// Starts the maintainers that are due, from the entry behind the last start on; returns the time
// until the next entry is due. The end of a maintainer sets this process's latch.
int64 serve_databases() {
  static int after_last_started = 0;
  int first = after_last_started;
  int64 now = monotonic_us();
  int64 next = now + kMaxIdleUs;
  int at_work = 0;
  for (int i = 0; i < database_count; i++) {
    if (databases[i].maintainer) check_maintainer(&databases[i], now);
    if (databases[i].maintainer) at_work++;
  }
  for (int i = 0; i < database_count; i++) {
    int position = (first + i) % database_count;
    ServedDatabase* entry = &databases[position];
    if (entry->maintainer) continue;
    if (start_time(entry, now) <= now) {
      if (at_work >= max_maintainers()) continue;
      try_to_start(entry, now);
    }
    if (entry->maintainer) {
      at_work++;
      after_last_started = position + 1;
    } else {
      next = Min(next, start_time(entry, now));
    }
  }
  return Max(next - monotonic_us(), 0);
}

// Lets every database be tried again at once.
void retry_all() {
  for (int i = 0; i < database_count; i++) {
    databases[i].failures = 0;
    databases[i].start_at = 0;
  }
}

ServedDatabase* find_or_add(const char* name) {
  for (int i = 0; i < database_count; i++)
    if (strcmp(databases[i].name, name) == 0) return &databases[i];
  ServedDatabase* entry = &databases[database_count++];
  *entry = {};
  strlcpy(entry->name, name, NAMEDATALEN);
  return entry;
}

// The maintainer of an unlisted database ends by itself soon.
void drop_unlisted() {
  int kept = 0;
  for (int i = 0; i < database_count; i++) {
    if (databases[i].is_listed) {
      databases[kept++] = databases[i];
      continue;
    }
    set_serving(&databases[i], false);
    if (databases[i].maintainer) pfree(databases[i].maintainer);
  }
  database_count = kept;
}

void read_databases() {
  List* names = NIL;
  char* list = pstrdup(settings.databases ? settings.databases : "");
  if (!SplitGUCList(list, ',', &names)) names = NIL;
  for (int i = 0; i < database_count; i++) databases[i].is_listed = false;
  ListCell* cell;
  int listed = 0;
  foreach (cell, names) {
    auto* name = static_cast<char*>(lfirst(cell));
    if (listed++ < kMaxListed)
      find_or_add(name)->is_listed = true;
    else
      ereport(LOG, (errmsg("pg_pulse maintains at most %d databases", kMaxListed),
                    errdetail("Database \"%s\" is ignored.", name)));
  }
  list_free(names);
  pfree(list);
  drop_unlisted();
  bool may_stay = database_count <= Max(1, max_worker_processes / 8);
  pg_atomic_write_u32(&shared()->may_stay, may_stay ? 1 : 0);
  retry_all();
}

extern "C" void pulse_launcher_exit(int, Datum) {
  for (int i = 0; i < database_count; i++) set_serving(&databases[i], false);
}

}  // namespace

void register_launcher() {
  BackgroundWorker worker = describe_process("pg_pulse launcher", "pulse_launcher_main");
  worker.bgw_restart_time = kRestartAfterS;
  RegisterBackgroundWorker(&worker);
}

}  // namespace pulse

extern "C" [[noreturn]] PGDLLEXPORT void pulse_launcher_main(Datum);

// An error, which concerns shared catalogs or memory, ends the process; the server restarts the
// launcher.
void pulse_launcher_main(Datum) {
  pulse::start_background_process();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  pgstat_report_activity(STATE_IDLE, nullptr);
  on_shmem_exit(pulse::pulse_launcher_exit, Int32GetDatum(0));
  pulse::SharedState* all = pulse::shared();
  pulse::publish_process(&all->launcher);
  pulse::read_databases();
  for (;;) {
    if (pg_atomic_exchange_u32(&all->must_retry, 0)) pulse::retry_all();
    if (pulse::sleep_in_background(pulse::serve_databases())) pulse::read_databases();
  }
}
