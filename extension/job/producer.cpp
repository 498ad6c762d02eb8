#include "job/producer.hpp"

#include "access/catalog.hpp"
#include "server/compat.hpp"
#include "server/owner_call.hpp"
#include "server/values.hpp"

extern "C" {
#include "catalog/pg_proc.h"
#include "utils/catcache.h"
}

namespace pulse {
namespace {

// Finds a public function that is not overloaded.
HeapTuple public_function(const char* name) {
  CatCList* named = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
  HeapTuple found = nullptr;
  for (int i = 0; i < named->n_members && !found; i++) {
    HeapTuple row = &named->members[i]->tuple;
    if (reinterpret_cast<Form_pg_proc>(GETSTRUCT(row))->pronamespace == catalog()->schema)
      found = heap_copytuple(row);
  }
  ReleaseCatCacheList(named);
  if (!found) elog(ERROR, "function pulse.%s() is missing", name);
  return found;
}

// Only grant_operator() grants retry_job, so whoever may call retry_job is an operator, the owner
// or a superuser.
bool is_operator(Oid role) {
  HeapTuple function = public_function("retry_job");
  return may_execute(reinterpret_cast<Form_pg_proc>(GETSTRUCT(function))->oid, role);
}

bool are_members(Oid a, Oid b, Oid role) {
  return is_member_of_role_nosuper(a, role) && is_member_of_role_nosuper(b, role);
}

// Members of a role to which add_job was granted are one producer. PUBLIC has no members.
bool share_granted_role(Oid a, Oid b) {
  HeapTuple function = public_function("add_job");
  bool isnull;
  Datum granted = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_proacl, &isnull);
  if (isnull) return false;
  Acl* acl = DatumGetAclP(granted);
  const AclItem* items = ACL_DAT(acl);
  for (int i = 0; i < ACL_NUM(acl); i++) {
    Oid role = items[i].ai_grantee;
    bool is_granted = (ACLITEM_GET_PRIVS(items[i]) & ACL_EXECUTE) != 0;
    if (is_granted && are_members(a, b, role)) return true;
  }
  return false;
}

bool is_one_producer(Oid a, Oid b) {
  return is_member_of_role_nosuper(a, b) || is_member_of_role_nosuper(b, a) ||
         share_granted_role(a, b);
}

Oid role_named(const NullableDatum& name) {
  return get_role_oid(text_to_cstring(DatumGetTextPP(name.value)), true);
}

}  // namespace

NullableDatum asking_producer() {
  return given(CStringGetTextDatum(GetUserNameFromId(asking_role(), false)));
}

bool may_name(const NullableDatum& added_by, const NullableDatum& asking) {
  if (added_by.isnull) return true;
  if (asking.isnull) return false;
  if (is_same_text(added_by.value, asking.value)) return true;
  Oid asking_role = role_named(asking);
  if (!OidIsValid(asking_role)) return false;
  if (is_operator(asking_role)) return true;
  Oid producer = role_named(added_by);
  return OidIsValid(producer) && is_one_producer(asking_role, producer);
}

void refuse_key(const text* key) {
  ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                  errmsg("job_key %s is in use by another producer",
                         quote_literal_cstr(text_to_cstring(key))),
                  errhint("Use another key, or make both roles members of one role that has "
                          "pulse.grant_producer().")));
  pg_unreachable();
}

}  // namespace pulse

// pulse_internal.may_name(added_by, asking)
PULSE_FUNCTION(pulse_may_name) {
  PG_RETURN_BOOL(pulse::may_name(fcinfo->args[0], fcinfo->args[1]));
}

// pulse_internal.refuse_key(job_key)
PULSE_FUNCTION(pulse_refuse_key) { pulse::refuse_key(PG_GETARG_TEXT_PP(0)); }
