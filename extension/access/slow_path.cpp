#include "access/slow_path.hpp"

namespace pulse {

Datum call_in_full(const char* name, FunctionCallInfo given) {
  Oid* types;
  int count;
  (void)get_func_signature(given->flinfo->fn_oid, &types, &count);
  List* path = list_make2(makeString(pstrdup("pulse")), makeString(pstrdup(name)));
  FmgrInfo function;
  fmgr_info(LookupFuncName(path, count, types, false), &function);
  LOCAL_FCINFO(call, FUNC_MAX_ARGS);
  InitFunctionCallInfoData(*call, &function, given->nargs, InvalidOid, nullptr, nullptr);
  memcpy(call->args, given->args, sizeof(NullableDatum) * given->nargs);
  Datum answer = FunctionCallInvoke(call);
  given->isnull = call->isnull;
  return answer;
}

}  // namespace pulse
