#include "access/slow_path.hpp"

namespace pulse {

Datum call_in_full(const char* name, FunctionCallInfo original) {
  Oid* types;
  int count;
  (void)get_func_signature(original->flinfo->fn_oid, &types, &count);
  List* path = list_make2(makeString(pstrdup("pulse")), makeString(pstrdup(name)));
  FmgrInfo function;
  fmgr_info(LookupFuncName(path, count, types, false), &function);
  LOCAL_FCINFO(call, FUNC_MAX_ARGS);
  InitFunctionCallInfoData(*call, &function, original->nargs, InvalidOid, nullptr, nullptr);
  memcpy(call->args, original->args, sizeof(NullableDatum) * original->nargs);
  Datum result = FunctionCallInvoke(call);
  original->isnull = call->isnull;
  return result;
}

}  // namespace pulse
