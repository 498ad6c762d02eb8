// A maintainer: the process that sweeps, promotes and prunes in one database. The maintainer ends:
// - within half a second when another session needs the database alone;
// - at once when settings are reloaded;
// - after 30 seconds at the latest;
// - where databases outnumber processes: after 2 seconds, or when nothing is due soon.
//
// The launcher starts the next maintainer.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/extension_tables.hpp"
#include "background/process.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int64 kSecondUs = USECS_PER_SEC;
// Starting a process costs as much as ten sweeps, so a maintainer stays between sweeps while
// processes are plenty. A maintainer ends after a while, because settings of the database or role
// apply only to a new process.
constexpr int64 kLongLifeUs = 30 * kSecondUs;
constexpr int64 kShortLifeUs = 2 * kSecondUs;
constexpr int64 kWorthWaitingUs = kSecondUs / 2;  // work due sooner is worth waiting for
constexpr int64 kCheckLocksUs = kSecondUs / 2;
// With sweeps switched off, a maintainer starts only to read the setting again.
constexpr int64 kCheckSettingsUs = 60 * kSecondUs;
constexpr int64 kReportAgainUs = 600 * kSecondUs;
constexpr int kBatch = 1000;
constexpr int kPromotionsPerSweep = 16;

constexpr const char kSweep[] =
    "SELECT (s.workers_lost OPERATOR(pg_catalog.+) s.jobs_requeued"
    " OPERATOR(pg_catalog.+) s.jobs_failed"
    " OPERATOR(pg_catalog.+) s.jobs_quarantined)::pg_catalog.int8"
    " FROM pulse.sweep(max_jobs => %d, dry_run => false) AS s";
constexpr const char kPromote[] =
    "SELECT pulse_internal.try_promotion(256)::pg_catalog.int4::pg_catalog.int8";
constexpr const char kPromoteIn010[] =
    "SELECT pulse._promote_marked(256)::pg_catalog.int4::pg_catalog.int8";
constexpr const char kPrune[] = "SELECT pulse_internal.prune(1000)::pg_catalog.int8";

ExtensionTables extension_tables;
char database_name[NAMEDATALEN];

struct Maintainer {
  DatabaseState* database;
  MaintainerState* state;
  bool is_0_1_0;  // whose internal functions are in schema pulse, and which cannot prune
  int64 began;
  // Work that remains now, whether or not further work is due.
  bool sweep_on;
  int promotions;
  bool prune_on;
};

// --- the extension in this database --------------------------------------------------------------

// Overrides settings that a database or role may have set for client sessions.
void pin_settings() {
  static const char* const pinned[][2] = {
      {"search_path", "pg_catalog, pg_temp"},
      {"default_transaction_isolation", "read committed"},
      {"default_transaction_read_only", "off"},
      {"default_transaction_deferrable", "off"},
      {"statement_timeout", "0"},
      {"idle_in_transaction_session_timeout", "0"},
      {"idle_session_timeout", "0"},
      {"jit", "off"},
      {"max_parallel_workers_per_gather", "0"},
      // Shorter than deadlock_timeout, so that in a deadlock the other session wins.
      {"lock_timeout", "500ms"},
      // A recovery lost in a crash is repeated by the next sweep.
      {"synchronous_commit", "off"},
      {"application_name", "pg_pulse"},
  };
  for (const auto& setting : pinned)
    SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
  // Servers before 17 lack the setting transaction_timeout.
  if (GetConfigOption("transaction_timeout", true, false))
    SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

// Reads the extension's owner and tables. False when the extension is not installed.
bool find_extension(Maintainer* maintainer) {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  strlcpy(database_name, get_database_name(MyDatabaseId), NAMEDATALEN);
  extension_tables = find_extension_tables();
  if (OidIsValid(extension_tables.extension)) maintainer->is_0_1_0 = !catalog()->has_index_lanes;
  // this_database() may search for dropped databases, and only a transaction can.
  maintainer->database = this_database();
  PopActiveSnapshot();
  CommitTransactionCommand();
  return OidIsValid(extension_tables.extension);
}

[[noreturn]] void end_maintainer(const Maintainer* maintainer, MaintainerEnd end,
                                 int64 next_start) {
  if (maintainer->sweep_on || maintainer->prune_on) {
    // The next maintainer starts at once and does the remaining work.
    pg_atomic_write_u64(&maintainer->state->last_sweep, 0);
    next_start = monotonic_us();
  }
  pg_atomic_write_u64(&maintainer->state->next_start, static_cast<uint64>(next_start));
  pg_atomic_write_u32(&maintainer->state->end, static_cast<uint32>(end));
  proc_exit(0);
}

// --- one step ------------------------------------------------------------------------------------

// A step never waits for a table while it holds another, so it takes part in no deadlock with ALTER
// or DROP EXTENSION: it tries the locks of the tables that it needs. The functions of 0.1.0 wait
// for locks, so the maintainer locks all tables for them, without waiting.
bool may_begin(const Maintainer* maintainer) {
  if (database_is_wanted(MyDatabaseId)) return false;
  if (!maintainer->is_0_1_0) return true;
  for (int i = 0; i < extension_tables.count; i++)
    if (!ConditionalLockRelationOid(extension_tables.table[i], RowExclusiveLock) ||
        !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(extension_tables.table[i])))
      return false;
  return true;
}

int64 execute(const char* statement) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  PushActiveSnapshot(GetTransactionSnapshot());
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  // The statement runs as the extension's owner. The security restriction keeps the statement from
  // regaining the superuser's identity and from leaving state in the session.
  SetUserIdAndSecContext(extension_tables.owner, context | SECURITY_RESTRICTED_OPERATION);
  int status = SPI_execute(statement, false, 0);
  if (status != SPI_OK_SELECT || SPI_processed != 1)
    elog(ERROR, "unexpected result %d of: %s", status, statement);
  bool isnull;
  Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
  int64 result = isnull ? 0 : DatumGetInt64(value);
  SetUserIdAndSecContext(user, context);
  SPI_finish();
  PopActiveSnapshot();
  return result;
}

// True when the maintainer no longer finds the extension as before. A statement that another
// session's ALTER or DROP EXTENSION overtook fails with any of several errors, internal errors too.
bool is_extension_changed() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  ExtensionTables now = find_extension_tables();
  PopActiveSnapshot();
  CommitTransactionCommand();
  return !is_same_extension(now, extension_tables);
}

// Failed locks beyond the tables', and concurrent changes of the extension, are no failures.
bool is_failure(int sqlstate) {
  return sqlstate != ERRCODE_LOCK_NOT_AVAILABLE && sqlstate != ERRCODE_T_R_DEADLOCK_DETECTED &&
         !is_extension_changed();
}

// Logs each SQLSTATE at most every ten minutes, because the next maintainer meets the same error.
void report_failure(MaintainerState* state, const char* statement, const ErrorData* error) {
  int64 now = monotonic_us();
  auto reported_at = static_cast<int64>(pg_atomic_read_u64(&state->reported_at));
  auto sqlstate = static_cast<uint32>(error->sqlerrcode);
  if (pg_atomic_read_u32(&state->reported_sqlstate) == sqlstate &&
      now - reported_at < kReportAgainUs)
    return;
  pg_atomic_write_u32(&state->reported_sqlstate, sqlstate);
  pg_atomic_write_u64(&state->reported_at, static_cast<uint64>(now));
  ereport(WARNING, (errcode(error->sqlerrcode),
                    errmsg("pg_pulse maintenance failed in database \"%s\": %s", database_name,
                           error->message),
                    error->detail ? errdetail_internal("%s", error->detail) : 0,
                    errhint("It is retried; the same error is logged every ten minutes."),
                    errcontext("statement: %s", statement)));
}

// Runs a statement that returns one bigint, in a transaction of its own and with the rights of the
// extension's owner. The statement waits for no table. Unless the statement succeeds, the
// maintainer ends: as busy if another session locks a table, needs the database alone, or has
// dropped the extension.
int64 run(const Maintainer* maintainer, const char* statement) {
  volatile int64 result = 0;
  volatile MaintainerEnd end = MaintainerEnd::kBusy;
  SetCurrentStatementStartTimestamp();
  debug_query_string = statement;
  pgstat_report_activity(STATE_RUNNING, statement);
  PG_TRY();
  {
    StartTransactionCommand();
    if (may_begin(maintainer)) {
      result = execute(statement);
      end = MaintainerEnd::kRan;
    }
    CommitTransactionCommand();
  }
  PG_CATCH();
  {
    HOLD_INTERRUPTS();
    MemoryContextSwitchTo(TopMemoryContext);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    AbortCurrentTransaction();
    RESUME_INTERRUPTS();
    end = is_failure(error->sqlerrcode) ? MaintainerEnd::kFailed : MaintainerEnd::kBusy;
    if (end == MaintainerEnd::kFailed) report_failure(maintainer->state, statement, error);
    FreeErrorData(error);
  }
  PG_END_TRY();
  debug_query_string = nullptr;
  pgstat_report_stat(false);
  pgstat_report_activity(STATE_IDLE, nullptr);
  if (end != MaintainerEnd::kRan) end_maintainer(maintainer, end, 0);
  return result;
}

// --- the life of a maintainer --------------------------------------------------------------------

// Time until the next sweep by the interval; negative when the sweep is overdue.
int64 next_interval_in_us(const Maintainer* maintainer) {
  auto last = static_cast<int64>(pg_atomic_read_u64(&maintainer->state->last_sweep));
  return last == 0 ? 0 : last + settings.sweep_interval_ms * INT64CONST(1000) - monotonic_us();
}

// True when another session needs this database alone.
bool is_database_wanted() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  bool is_wanted = database_is_wanted(MyDatabaseId);
  CommitTransactionCommand();
  MemoryContextSwitchTo(TopMemoryContext);
  return is_wanted;
}

// Ends the maintainer, unless it may stay until the next work is due.
void end_if_time_is_up(const Maintainer* maintainer, int64 idle_us) {
  bool may_stay = pg_atomic_read_u32(&shared()->may_stay) != 0;
  int64 now = monotonic_us();
  if ((idle_us > kWorthWaitingUs && !may_stay) ||
      now - maintainer->began > (may_stay ? kLongLifeUs : kShortLifeUs))
    end_maintainer(maintainer, MaintainerEnd::kRan, now + idle_us);
}

// Sleeps; from here on the maintainer has run well, whatever ends it. Ends the maintainer when
// another session needs the database alone, or when settings were reloaded.
void sleep_idle(const Maintainer* maintainer, int64 idle_us) {
  pg_atomic_write_u32(&maintainer->state->end, static_cast<uint32>(MaintainerEnd::kRan));
  if (!pg_atomic_read_u32(&maintainer->state->is_serving)) wake_launcher();
  bool is_reloaded = sleep_in_background(Min(idle_us, kCheckLocksUs));
  if (is_reloaded) end_maintainer(maintainer, MaintainerEnd::kRan, monotonic_us());
  if (is_database_wanted()) end_maintainer(maintainer, MaintainerEnd::kBusy, 0);
}

void sweep(Maintainer* maintainer) {
  int64 now = monotonic_us();
  bool by_interval = next_interval_in_us(maintainer) <= 0;
  char statement[sizeof(kSweep) + 16];
  snprintf(statement, sizeof(statement), kSweep, settings.sweep_jobs);
  // A step that found something may have left the rest to the next transaction.
  maintainer->sweep_on = run(maintainer, statement) > 0;
  if (by_interval) {
    pg_atomic_write_u64(&maintainer->state->last_sweep, static_cast<uint64>(now));
    maintainer->prune_on = !maintainer->is_0_1_0;
  }
  maintainer->promotions = kPromotionsPerSweep;
}

void maintain_database(Maintainer* maintainer) {
  // Sweeps once at the start, so that every table and function is in the caches when the requested
  // sweep is due.
  sweep(maintainer);
  for (;;) {
    pg_atomic_write_u64(&maintainer->state->seen_at, static_cast<uint64>(monotonic_us()));
    int64 idle_us =
        Max(Min(next_interval_in_us(maintainer), sweep_due_in_us(maintainer->database)), 0);
    bool must_sweep = idle_us == 0 || maintainer->sweep_on;
    bool must_promote = maintainer->promotions > 0 && promotion_marks_remain();
    bool is_idle = !must_sweep && !must_promote && !maintainer->prune_on;
    end_if_time_is_up(maintainer, is_idle ? idle_us : 0);
    if (must_sweep) {
      sweep(maintainer);
    } else if (must_promote) {
      maintainer->promotions--;
      run(maintainer, maintainer->is_0_1_0 ? kPromoteIn010 : kPromote);
    } else if (maintainer->prune_on) {
      maintainer->prune_on = run(maintainer, kPrune) >= kBatch;
    } else {
      sleep_idle(maintainer, idle_us);
    }
    CHECK_FOR_INTERRUPTS();
  }
}

}  // namespace
}  // namespace pulse

extern "C" PGDLLEXPORT void pulse_maintainer_main(Datum database);

void pulse_maintainer_main(Datum database) {
  pulse::start_background_process();
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
  pulse::pin_settings();
  pulse::Maintainer maintainer = {};
  maintainer.began = pulse::monotonic_us();
  bool is_installed = pulse::find_extension(&maintainer);
  if (!maintainer.database) proc_exit(0);
  maintainer.state = &maintainer.database->maintainer;
  pulse::publish_process(&maintainer.state->process);
  if (!is_installed) pulse::end_maintainer(&maintainer, pulse::MaintainerEnd::kNotInstalled, 0);
  if (pulse::settings.sweep_interval_ms < 0)
    pulse::end_maintainer(&maintainer, pulse::MaintainerEnd::kOff,
                          pulse::monotonic_us() + pulse::kCheckSettingsUs);
  pulse::maintain_database(&maintainer);
}
