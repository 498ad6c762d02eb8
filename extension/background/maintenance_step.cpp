#include "background/maintenance_step.hpp"

#include "access/extension_tables.hpp"
#include "background/process.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

constexpr int64 kReportAgainUs = 600 * USECS_PER_SEC;

ExtensionTables extension_tables;
char database_name[NAMEDATALEN];
MemoryContext step_context = nullptr;

bool prune_exists() {
  Oid argument = INT4OID;
  List* name = list_make2(makeString(pstrdup("pulse")), makeString(pstrdup("_prune")));
  return OidIsValid(LookupFuncName(name, 1, &argument, true));
}

// Locks all tables without waiting. A step never waits for a table while it holds another, so it
// takes part in no deadlock with ALTER or DROP EXTENSION.
StepEnd lock_tables() {
  if (database_is_wanted(MyDatabaseId)) return StepEnd::kBusy;
  for (int i = 0; i < extension_tables.count; i++) {
    if (!ConditionalLockRelationOid(extension_tables.table[i], RowExclusiveLock))
      return StepEnd::kBusy;
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(extension_tables.table[i])))
      return StepEnd::kGone;
  }
  return StepEnd::kDone;
}

void execute(const char* statement, int64* result) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  PushActiveSnapshot(GetTransactionSnapshot());
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  // The statement runs as the extension's owner. The security restriction keeps it from regaining
  // the superuser's identity and from leaving state in the session.
  SetUserIdAndSecContext(extension_tables.owner, context | SECURITY_RESTRICTED_OPERATION);
  int status = SPI_execute(statement, false, 0);
  if (status != SPI_OK_SELECT || SPI_processed != 1)
    elog(ERROR, "unexpected result %d of: %s", status, statement);
  bool isnull;
  Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
  *result = isnull ? 0 : DatumGetInt64(value);
  SetUserIdAndSecContext(user, context);
  SPI_finish();
  PopActiveSnapshot();
}

// Failed locks beyond the tables', and concurrent changes of the extension, are no failures.
StepEnd step_end_of(int sqlstate) {
  switch (sqlstate) {
    case ERRCODE_LOCK_NOT_AVAILABLE:
    case ERRCODE_T_R_DEADLOCK_DETECTED: return StepEnd::kBusy;
    case ERRCODE_UNDEFINED_TABLE:
    case ERRCODE_UNDEFINED_FUNCTION:
    case ERRCODE_INVALID_SCHEMA_NAME: return StepEnd::kGone;
    default: return StepEnd::kFailed;
  }
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

StepEnd attempt_step(const char* statement, int64* result) {
  StepEnd end = lock_tables();
  if (end == StepEnd::kDone) execute(statement, result);
  return end;
}

}  // namespace

void pin_settings() {
  static const char* const pinned[][2] = {
      {"search_path", "pg_catalog, pg_temp"},
      {"default_transaction_isolation", "read committed"},
      {"default_transaction_read_only", "off"},
      {"default_transaction_deferrable", "off"},
      {"statement_timeout", "0"},
      {"idle_in_transaction_session_timeout", "0"},
      {"idle_session_timeout", "0"},
      // Shorter than deadlock_timeout, so that in a deadlock the other session wins.
      {"lock_timeout", "500ms"},
      // A recovery lost in a crash is repeated by the next sweep.
      {"synchronous_commit", "off"},
      {"application_name", "pg_pulse"},
  };
  for (const auto& setting : pinned)
    SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
  // Servers before 17 have no such setting.
  if (GetConfigOption("transaction_timeout", true, false))
    SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

bool find_extension(bool* can_prune) {
  step_context = AllocSetContextCreate(TopMemoryContext, "pg_pulse step", ALLOCSET_DEFAULT_SIZES);
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  strlcpy(database_name, get_database_name(MyDatabaseId), NAMEDATALEN);
  extension_tables = find_extension_tables();
  if (OidIsValid(extension_tables.extension)) *can_prune = prune_exists();
  // Done here because looking up dropped databases needs a transaction.
  (void)this_database();
  PopActiveSnapshot();
  CommitTransactionCommand();
  return OidIsValid(extension_tables.extension);
}

bool is_database_wanted() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  bool is_wanted = database_is_wanted(MyDatabaseId);
  CommitTransactionCommand();
  MemoryContextSwitchTo(TopMemoryContext);
  return is_wanted;
}

StepEnd run_step(MaintainerState* state, const char* statement, int64* result) {
  volatile StepEnd end = StepEnd::kDone;
  SetCurrentStatementStartTimestamp();
  debug_query_string = statement;
  pgstat_report_activity(STATE_RUNNING, statement);
  PG_TRY();
  {
    StartTransactionCommand();
    end = attempt_step(statement, result);
    CommitTransactionCommand();
  }
  PG_CATCH();
  {
    HOLD_INTERRUPTS();
    MemoryContextSwitchTo(step_context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    AbortCurrentTransaction();
    RESUME_INTERRUPTS();
    end = step_end_of(error->sqlerrcode);
    if (end == StepEnd::kFailed) report_failure(state, statement, error);
  }
  PG_END_TRY();
  MemoryContextSwitchTo(TopMemoryContext);
  MemoryContextReset(step_context);
  debug_query_string = nullptr;
  pgstat_report_stat(false);
  pgstat_report_activity(STATE_IDLE, nullptr);
  return end;
}

}  // namespace pulse
