#include "background/maintenance_step.hpp"

#include "access/extension_tables.hpp"
#include "background/process.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

constexpr int64 kReportAgainUs = 600 * USECS_PER_SEC;

ExtensionTables own;
char database_name[NAMEDATALEN];
MemoryContext step_context = nullptr;

bool prune_exists() {
  Oid argument = INT4OID;
  List* name = list_make2(makeString(pstrdup("pulse")), makeString(pstrdup("_prune")));
  return OidIsValid(LookupFuncName(name, 1, &argument, true));
}

// All of them now, or none: a step that holds one table never waits for another, so it is in no
// deadlock with ALTER or DROP EXTENSION.
StepEnd lock_tables() {
  if (database_is_wanted(MyDatabaseId)) return StepEnd::kBusy;
  for (int i = 0; i < own.count; i++) {
    if (!ConditionalLockRelationOid(own.table[i], RowExclusiveLock)) return StepEnd::kBusy;
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(own.table[i]))) return StepEnd::kGone;
  }
  return StepEnd::kDone;
}

void execute(const char* statement, int64* answer) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  PushActiveSnapshot(GetTransactionSnapshot());
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  // Nothing that runs here can take the superuser's identity back, or leave anything in the
  // session.
  SetUserIdAndSecContext(own.owner, context | SECURITY_RESTRICTED_OPERATION);
  int result = SPI_execute(statement, false, 0);
  if (result != SPI_OK_SELECT || SPI_processed != 1)
    elog(ERROR, "unexpected answer %d to: %s", result, statement);
  bool isnull;
  Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
  *answer = isnull ? 0 : DatumGetInt64(value);
  SetUserIdAndSecContext(user, context);
  SPI_finish();
  PopActiveSnapshot();
}

// Locks that a statement needs beside its tables', and what others do to the extension meanwhile,
// are no errors.
StepEnd judge(int sqlstate) {
  switch (sqlstate) {
    case ERRCODE_LOCK_NOT_AVAILABLE:
    case ERRCODE_T_R_DEADLOCK_DETECTED: return StepEnd::kBusy;
    case ERRCODE_UNDEFINED_TABLE:
    case ERRCODE_UNDEFINED_FUNCTION:
    case ERRCODE_INVALID_SCHEMA_NAME: return StepEnd::kGone;
    default: return StepEnd::kFailed;
  }
}

// Each kind of error once in a while: the next maintainer meets it again.
void complain(MaintainerState* state, const char* statement, const ErrorData* error) {
  int64 now = monotonic_us();
  auto reported_at = static_cast<int64>(pg_atomic_read_u64(&state->reported_at));
  auto sqlstate = static_cast<uint32>(error->sqlerrcode);
  if (pg_atomic_read_u32(&state->reported_sqlstate) == sqlstate &&
      now - reported_at < kReportAgainUs)
    return;
  pg_atomic_write_u32(&state->reported_sqlstate, sqlstate);
  pg_atomic_write_u64(&state->reported_at, static_cast<uint64>(now));
  ereport(WARNING, (errcode(error->sqlerrcode),
                    errmsg("pg_pulse's background worker failed in database \"%s\": %s",
                           database_name, error->message),
                    error->detail ? errdetail_internal("%s", error->detail) : 0,
                    errhint("It tries again, and tells of the same error every ten minutes."),
                    errcontext("statement: %s", statement)));
}

StepEnd attempt_step(const char* statement, int64* answer) {
  StepEnd end = lock_tables();
  if (end == StepEnd::kDone) execute(statement, answer);
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
      // Less than a deadlock_timeout: whoever waits for us in a circle wins.
      {"lock_timeout", "500ms"},
      // A recovery that a crash takes back is made again by the next sweep.
      {"synchronous_commit", "off"},
      {"application_name", "pg_pulse"},
  };
  for (const auto& setting : pinned)
    SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
  if (kLimitsTransactions) SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

bool find_extension(bool* can_prune) {
  step_context = AllocSetContextCreate(TopMemoryContext, "pg_pulse step", ALLOCSET_DEFAULT_SIZES);
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  strlcpy(database_name, get_database_name(MyDatabaseId), NAMEDATALEN);
  own = find_extension_tables();
  if (OidIsValid(own.extension)) *can_prune = prune_exists();
  // Now, while there is a transaction to look up dropped databases with.
  (void)this_database();
  PopActiveSnapshot();
  CommitTransactionCommand();
  return OidIsValid(own.extension);
}

bool is_in_the_way() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  bool is_wanted = database_is_wanted(MyDatabaseId);
  CommitTransactionCommand();
  MemoryContextSwitchTo(TopMemoryContext);
  return is_wanted;
}

StepEnd run_step(MaintainerState* state, const char* statement, int64* answer) {
  volatile StepEnd end = StepEnd::kDone;
  SetCurrentStatementStartTimestamp();
  debug_query_string = statement;
  pgstat_report_activity(STATE_RUNNING, statement);
  PG_TRY();
  {
    StartTransactionCommand();
    end = attempt_step(statement, answer);
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
    end = judge(error->sqlerrcode);
    if (end == StepEnd::kFailed) complain(state, statement, error);
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
