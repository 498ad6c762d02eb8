#include "server/owner_call.hpp"

extern "C" {
#include "catalog/pg_proc.h"
}

namespace pulse {
namespace {

// InvalidOid outside of calls that act as the owner.
Oid asking = InvalidOid;

Oid owner_of(Oid function) {
  HeapTuple row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(row)) elog(ERROR, "cache lookup failed for function %u", function);
  Oid owner = reinterpret_cast<Form_pg_proc>(GETSTRUCT(row))->proowner;
  ReleaseSysCache(row);
  return owner;
}

// Finds the body of this function: a function of schema pulse_internal with the same arguments, and
// the same name followed by "_as_owner".
void find_body(Oid entry, FmgrInfo* body, MemoryContext context) {
  HeapTuple row = SearchSysCache1(PROCOID, ObjectIdGetDatum(entry));
  if (!HeapTupleIsValid(row)) elog(ERROR, "cache lookup failed for function %u", entry);
  auto* function = reinterpret_cast<Form_pg_proc>(GETSTRUCT(row));
  List* name = list_make2(makeString(pstrdup("pulse_internal")),
                          makeString(psprintf("%s_as_owner", NameStr(function->proname))));
  Oid found = LookupFuncName(name, function->pronargs, function->proargtypes.values, false);
  ReleaseSysCache(row);
  fmgr_info_cxt(found, body, context);
}

// Finds the body once for each place in a statement that calls the function.
FmgrInfo* body_of(FmgrInfo* entry) {
  if (!entry->fn_extra) {
    auto* body = static_cast<FmgrInfo*>(MemoryContextAllocZero(entry->fn_mcxt, sizeof(FmgrInfo)));
    find_body(entry->fn_oid, body, entry->fn_mcxt);
    entry->fn_extra = body;
  }
  return static_cast<FmgrInfo*>(entry->fn_extra);
}

Datum call_body(FunctionCallInfo fcinfo) {
  auto* call = static_cast<FunctionCallInfo>(palloc(SizeForFunctionCallInfo(PG_NARGS())));
  InitFunctionCallInfoData(*call, body_of(fcinfo->flinfo), PG_NARGS(), PG_GET_COLLATION(),
                           fcinfo->context, fcinfo->resultinfo);
  memcpy(call->args, fcinfo->args, sizeof(NullableDatum) * PG_NARGS());
  Datum result = FunctionCallInvoke(call);
  fcinfo->isnull = call->isnull;
  return result;
}

}  // namespace

Oid asking_role() {
  if (OidIsValid(asking)) return asking;
  Oid set_role = GetCurrentRoleId();
  return OidIsValid(set_role) ? set_role : GetSessionUserId();
}

CallerState begin_owner_call(FunctionCallInfo fcinfo) {
  Oid owner = owner_of(fcinfo->flinfo->fn_oid);
  CallerState caller;
  caller.asking_role = asking;
  GetUserIdAndSecContext(&caller.user, &caller.security_context);
  asking = caller.user;
  SetUserIdAndSecContext(owner, caller.security_context | SECURITY_LOCAL_USERID_CHANGE);
  return caller;
}

void end_owner_call(const CallerState& caller) {
  SetUserIdAndSecContext(caller.user, caller.security_context);
  asking = caller.asking_role;
}

}  // namespace pulse

// Functions of schema pulse whose body is pulse_internal.NAME_as_owner().
PULSE_FUNCTION(pulse_call_as_owner) {
  return pulse::as_owner(fcinfo, [fcinfo] { return pulse::call_body(fcinfo); });
}

// pulse_internal.asking_role()
PULSE_FUNCTION(pulse_asking_role) {
  auto* name = static_cast<Name>(palloc(NAMEDATALEN));
  namestrcpy(name, GetUserNameFromId(pulse::asking_role(), false));
  PG_RETURN_NAME(name);
}
