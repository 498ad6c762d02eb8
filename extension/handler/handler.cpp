#include "handler/handler.hpp"

#include "access/catalog.hpp"
#include "server/errors.hpp"

extern "C" {
#include "catalog/pg_proc.h"
#include "utils/regproc.h"
}

namespace pulse {
namespace {

// Whether the function can take a job. A pseudo-type would be no value, or a value that only the
// server's own functions may have.
bool takes_job(Form_pg_proc function) {
  if (function->prokind != PROKIND_FUNCTION || function->proretset || function->pronargs != 1 ||
      OidIsValid(function->provariadic))
    return false;
  Oid result = function->prorettype;
  if (get_typtype(result) == TYPTYPE_PSEUDO && result != VOIDOID && result != RECORDOID)
    return false;
  Oid argument = function->proargtypes.values[0];
  return argument == JSONOID || argument == JSONBOID ||
         argument == GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("claimed_job"),
                                     ObjectIdGetDatum(catalog()->schema));
}

// The owner of pg_pulse; InvalidOid where the extension is not installed.
Oid owner_of_extension() {
  Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum("pg_pulse"));
  SysScanDesc scan = systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &key);
  HeapTuple row = systable_getnext(scan);
  Oid owner = row ? reinterpret_cast<Form_pg_extension>(GETSTRUCT(row))->extowner : InvalidOid;
  systable_endscan(scan);
  table_close(extensions, AccessShareLock);
  return owner;
}

const char* word_of(HandlerTrust trust) {
  switch (trust) {
    case HandlerTrust::kTrusted: return "trusted";
    case HandlerTrust::kRestricted: return "restricted";
    case HandlerTrust::kRefused: break;
  }
  return "refused";
}

}  // namespace

bool read_handler(Oid function, Handler* handler) {
  HeapTuple row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(row)) return false;
  auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(row));
  *handler = {function,        form->pronamespace, form->proowner,  form->prosecdef,
              takes_job(form), InvalidOid,         form->prorettype};
  if (handler->takes_job) handler->argument = form->proargtypes.values[0];
  ReleaseSysCache(row);
  return true;
}

void refuse_unfit(Oid function) {
  ereport(ERROR,
          (errcode(kOutOfRange), errmsg("handler %s cannot take a job", format_procedure(function)),
           errhint("It must be a function with one argument, the payload as json or jsonb "
                   "or the whole job as pulse.claimed_job, that returns one value or "
                   "void.")));
  pg_unreachable();
}

// is_member_of_role() counts a superuser as a member of every role.
HandlerTrust trust_of(const Handler& handler, Oid role) {
  if (is_member_of_role(handler.owner, role) || handler.owner == owner_of_extension())
    return HandlerTrust::kTrusted;
  return handler.is_definer ? HandlerTrust::kRestricted : HandlerTrust::kRefused;
}

}  // namespace pulse

// pulse_internal.check_handler(handler)
PULSE_FUNCTION(pulse_check_handler) {
  pulse::Handler handler;
  if (!pulse::read_handler(PG_GETARG_OID(0), &handler) || !handler.takes_job)
    pulse::refuse_unfit(PG_GETARG_OID(0));
  PG_RETURN_VOID();
}

// pulse_internal.handler_trust(handler, role)
PULSE_FUNCTION(pulse_handler_trust) {
  pulse::Handler handler;
  if (!pulse::read_handler(PG_GETARG_OID(0), &handler)) PG_RETURN_NULL();
  Oid role = get_role_oid(NameStr(*PG_GETARG_NAME(1)), false);
  PG_RETURN_TEXT_P(cstring_to_text(pulse::word_of(pulse::trust_of(handler, role))));
}
