#include "install/drop_guard.hpp"

#include "access/catalog.hpp"
#include "server/errors.hpp"
#include "server/postgres.hpp"
#include "server/settings.hpp"
#include "shared/memory.hpp"
#include "wake/waiters.hpp"

extern "C" {
#include "catalog/objectaccess.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
}

namespace pulse {
namespace {

// The hint is for people, so larger numbers are not counted.
constexpr int kMaxCounted = 10000;

object_access_hook_type next_hook = nullptr;

// Drops by this transaction: of a table of jobs, perhaps in a savepoint that was rolled back; of
// the extension, which only the commit knows for certain.
bool drops_jobs = false;
bool is_dropped = false;

bool is_job_table(Oid relation) {
  const char* name = get_rel_name(relation);
  if (!name || strcmp(name, "job") != 0) return false;
  Oid extension = get_extension_oid("pg_pulse", true);
  return OidIsValid(extension) && getExtensionOfObject(RelationRelationId, relation) == extension;
}

// Counts with a sequential scan, because the indexes may already be dropped. The deletion holds the
// table's lock, so the latest snapshot shows every added job.
int count_jobs(Oid relation) {
  Relation job = table_open(relation, NoLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* tuple = table_slot_create(job, nullptr);
  TableScanDesc scan = table_beginscan(job, snapshot, 0, nullptr);
  int count = 0;
  while (count <= kMaxCounted && table_scan_getnextslot(scan, ForwardScanDirection, tuple)) {
    CHECK_FOR_INTERRUPTS();
    count++;
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(tuple);
  UnregisterSnapshot(snapshot);
  table_close(job, NoLock);
  return count;
}

void refuse_drop(int jobs) {
  const char* more = jobs > kMaxCounted ? "more than " : "";
  ereport(ERROR, (errcode(kLiveJobs),
                  errmsg("%s%d live %s would be deleted", more, Min(jobs, kMaxCounted),
                         jobs == 1 ? "job" : "jobs"),
                  errdetail("Jobs are rows of the extension and go with it, as do finished ones."),
                  errhint("Let them run, or cancel them. To delete them all: SET pulse.allow_drop "
                          "= on, then drop again.")));
}

// The update from 0.1.0 moves the functions that bodies of 0.1.0 call. A body that the server
// loaded before the update, and that waits in a table for the update, would not find the moved
// functions. So a call waits before the server loads the body, and an update waits for calls under
// way. Functions in C need no lock: this library has their bodies.
void wait_for_update(Oid function) {
  if (!may_be_0_1_0()) return;
  Oid schema = get_namespace_oid("pulse", true);
  if (!OidIsValid(schema) || get_func_namespace(function) != schema ||
      OidIsValid(get_relname_relid("claim_batch", schema)))
    return;
  HeapTuple row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(row)) return;
  Oid language = reinterpret_cast<Form_pg_proc>(GETSTRUCT(row))->prolang;
  ReleaseSysCache(row);
  Oid job = get_relname_relid("job", schema);
  if (language != ClanguageId && OidIsValid(job)) LockRelationOid(job, AccessShareLock);
}

// The server drops the extension after its tables, so the guard watches the job table.
extern "C" void pulse_object_access(ObjectAccessType access, Oid class_id, Oid object, int part,
                                    void* argument) {
  if (next_hook) next_hook(access, class_id, object, part, argument);
  if (access == OAT_FUNCTION_EXECUTE) return wait_for_update(object);
  if (access != OAT_DROP || class_id != RelationRelationId || part != 0) return;
  if (IsBinaryUpgrade || !is_job_table(object)) return;
  drops_jobs = true;
  if (settings.allow_drop) return;
  int jobs = count_jobs(object);
  if (jobs > 0) refuse_drop(jobs);
}

}  // namespace

void guard_drop() {
  next_hook = object_access_hook;
  object_access_hook = pulse_object_access;
}

void confirm_drop() {
  if (!drops_jobs) return;
  is_dropped = !OidIsValid(get_extension_oid("pg_pulse", true));
  (void)shared();  // found here for the commit, which must not fail
}

void end_drop(bool is_committed) {
  if (is_committed && is_dropped) {
    give_back_entry();
    wake_all_waiters();
  }
  drops_jobs = is_dropped = false;
}

}  // namespace pulse
