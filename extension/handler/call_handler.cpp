// pulse.call_handler(job): runs a function of the database as a task. See sql/worker/handler.sql
// for the contract.
//
// A role that sets handlers must not gain the rights of a worker's role. The server confines a
// SECURITY DEFINER function only while it runs. Its deferred triggers, its cursors WITH HOLD and a
// cast of its result would run as the worker. So a handler whose owner could gain runs as a
// security-restricted operation, including the cast of the result. It runs as the owner from the
// start, because the function may cease to be SECURITY DEFINER at any moment.
#include "server/postgres.hpp"

#include "access/local_settings.hpp"
#include "claim/claimed_job.hpp"
#include "handler/handler.hpp"
#include "handler/session_state.hpp"
#include "server/call_checks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/values.hpp"

extern "C" {
#include "utils/regproc.h"
}

namespace pulse {
namespace {

// Columns of pulse.claimed_job, from 0.
enum Column { kIdentifier = 2, kPayload = 3, kHandler = 18, kTraceparent = 22 };

struct HandledJob {
  HeapTupleHeader row;
  Datum values[kClaimedColumns];
  bool nulls[kClaimedColumns];

  NullableDatum field(Column column) const { return {values[column], nulls[column]}; }
  const char* task() const {
    return nulls[kIdentifier] ? "" : TextDatumGetCString(values[kIdentifier]);
  }
};

void read_job(HeapTupleHeader row, HandledJob* job) {
  TupleDesc shape = shape_of(row);
  if (shape->natts != kClaimedColumns) elog(ERROR, "type pulse.claimed_job is not as it was made");
  job->row = row;
  read_fields(row, shape, job->values, job->nulls);
  ReleaseTupleDesc(shape);
}

const char* quoted_role(Oid role) { return quote_identifier(GetUserNameFromId(role, false)); }

[[noreturn]] void refuse_handler(const HandledJob& job, const Handler& handler, Oid role) {
  ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                  errmsg("role %s does not run handler %s of task %s", quoted_role(role),
                         format_procedure(handler.function), quote_literal_cstr(job.task())),
                  errdetail("The owner of the function could act with the rights of this role."),
                  errhint("Make it SECURITY DEFINER, or give it to the owner of pg_pulse.")));
  pg_unreachable();
}

Handler handler_of(const HandledJob& job) {
  Handler handler;
  if (job.nulls[kHandler] || !read_handler(DatumGetObjectId(job.values[kHandler]), &handler))
    ereport(ERROR,
            (errcode(kUnknown), errmsg("task %s has no handler", quote_literal_cstr(job.task())),
             errhint("pulse.set_task(identifier, handler => ...) gives it a function of "
                     "this database.")));
  if (!handler.takes_job) refuse_unfit(handler.function);
  return handler;
}

struct Judgement {
  HandlerTrust trust;
  Oid role;  // the role with this trust in the handler
};

// Takes the lower trust of two roles: the role whose rights a handler gets, and the role that the
// session has back after the handler.
Judgement judge(const Handler& handler) {
  Judgement mine = {trust_of(handler, GetUserId()), GetUserId()};
  if (GetUserId() == GetOuterUserId()) return mine;
  Judgement outer = {trust_of(handler, GetOuterUserId()), GetOuterUserId()};
  return outer.trust > mine.trust ? outer : mine;
}

Const* constant_of(Oid type, const NullableDatum& value) {
  return makeConst(type, -1, InvalidOid, -1, value.value, value.isnull, false);
}

FuncExpr* call_of(Oid function, Oid result, Expr* argument) {
  return makeFuncExpr(function, result, list_make1(argument), InvalidOid, InvalidOid,
                      COERCE_EXPLICIT_CALL);
}

Const* argument_of(const HandledJob& job, Oid type) {
  NullableDatum payload = job.field(kPayload);
  if (type == JSONOID) return constant_of(type, payload);
  if (type != JSONBOID) return constant_of(type, {HeapTupleHeaderGetDatum(job.row), false});
  if (!payload.isnull)
    payload.value = DirectFunctionCall1(
        jsonb_in, PointerGetDatum(text_to_cstring(DatumGetTextPP(payload.value))));
  return constant_of(type, payload);
}

// The expression for the executor: the result as json. No planner sees the expression, because a
// planner would call an IMMUTABLE handler beforehand.
Expr* expression_of(const HandledJob& job, const Handler& handler) {
  FuncExpr* call = call_of(handler.function, handler.result,
                           reinterpret_cast<Expr*>(argument_of(job, handler.argument)));
  if (handler.result != VOIDOID) call = call_of(F_TO_JSON, JSONOID, reinterpret_cast<Expr*>(call));
  return reinterpret_cast<Expr*>(call);
}

// Fires the deferred triggers of the transaction, including triggers of the caller. The triggers
// fire here, where the settings of the job hold.
void fire_deferred_triggers() {
  auto* all = makeNode(ConstraintsSetStmt);
  all->deferred = false;
  AfterTriggerSetState(all);
}

NullableDatum result_of(const HandledJob& job, const Handler& handler, bool is_restricted) {
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  ExprContext* place = CreateStandaloneExprContext();
  // The parser and the executor check the same privilege.
  if (!may_use_schema(user, handler.schema))
    aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(handler.schema));
  ExprState* call = ExecInitExpr(expression_of(job, handler), nullptr);
  CommandCounterIncrement();
  PushActiveSnapshot(GetTransactionSnapshot());
  if (is_restricted) SetUserIdAndSecContext(handler.owner, context | SECURITY_RESTRICTED_OPERATION);
  NullableDatum result;
  result.value = ExecEvalExpr(call, place, &result.isnull);
  if (handler.result == VOIDOID) result = kNull;
  CommandCounterIncrement();
  // A restricted operation leaves no deferred triggers.
  if (!is_restricted) fire_deferred_triggers();
  PopActiveSnapshot();
  FreeExprContext(place, true);
  return result;
}

// Runs the handler with settings that end with it.
NullableDatum result_in_level(const HandledJob& job, const Handler& handler, bool is_restricted) {
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  int level = NewGUCNestLevel();
  // Jobs that the handler adds belong to the trace of the handler's job.
  set_in_level("pulse.traceparent",
               job.nulls[kTraceparent] ? "" : TextDatumGetCString(job.values[kTraceparent]));
  NullableDatum result = result_of(job, handler, is_restricted);
  AtEOXact_GUC(false, level);
  SetUserIdAndSecContext(user, context);
  return result;
}

bool is_of_restriction(const ErrorData* error) {
  return error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE && error->message_id &&
         strstr(error->message_id, "security-restricted operation");
}

// The server's error names the refused action, but no reason. This function adds the reason. The
// names are read beforehand, because an aborted transaction cannot read the catalog.
NullableDatum restricted_result(const HandledJob& job, const Handler& handler, Oid judged) {
  MemoryContext context = CurrentMemoryContext;
  const char* name = format_procedure(handler.function);
  const char* owner = quoted_role(handler.owner);
  const char* role = quoted_role(judged);
  NullableDatum result = kNull;
  PG_TRY();
  { result = result_in_level(job, handler, true); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    if (is_of_restriction(error)) {
      error->detail = psprintf(
          "Handler %s runs restricted, because its owner %s may not act as role %s: without "
          "temporary objects, deferred constraints, LISTEN, PREPARE and cursors WITH HOLD.",
          name, owner, role);
      error->hint = psprintf(
          "Let it do without (SET CONSTRAINTS ALL IMMEDIATE for constraints), give it to the owner "
          "of pg_pulse, or GRANT %s TO %s.",
          role, owner);
    }
    ReThrowError(error);
  }
  PG_END_TRY();
  return result;
}

NullableDatum call_handler(const HandledJob& job) {
  Handler handler = handler_of(job);
  Judgement judgement = judge(handler);
  if (judgement.trust == HandlerTrust::kRefused) refuse_handler(job, handler, judgement.role);
  bool is_noted = begin_session_state();
  NullableDatum result = judgement.trust == HandlerTrust::kRestricted
                             ? restricted_result(job, handler, judgement.role)
                             : result_in_level(job, handler, false);
  if (is_noted) end_session_state();
  return result;
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_call_handler) {
  pulse::require_arguments(fcinfo, {0});
  pulse::HandledJob job;
  pulse::read_job(pulse::header_of(PG_GETARG_DATUM(0)), &job);
  NullableDatum result = pulse::call_handler(job);
  if (result.isnull) PG_RETURN_NULL();
  PG_RETURN_DATUM(result.value);
}
