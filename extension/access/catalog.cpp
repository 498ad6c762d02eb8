#include "access/catalog.hpp"

#include "access/columns.hpp"

namespace pulse {
namespace {

Catalog known;
bool is_valid = false;
uint64 generation = 1;  // of the oids that catalog() looks up next
bool is_registered = false;

void invalidate() {
  is_valid = false;
  generation++;
}

// A change of any of these relations, or of an unnamed one, empties the cache: lookups are cheap
// and rare. Must not raise, because any lock of a relation may call it.
extern "C" void pulse_relation_changed(Datum, Oid relation) {
  if (relation == InvalidOid || relation == known.job || relation == known.installation)
    invalidate();
}

extern "C" void pulse_namespace_changed(Datum, int, uint32) { invalidate(); }

Oid relation_named(const char* name) {
  Oid oid = get_relname_relid(name, known.schema);
  if (!OidIsValid(oid))
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"pulse.%s\" is missing", name),
             errhint("Install the extension again: CREATE EXTENSION pg_pulse.")));
  return oid;
}

Oid state_named(const char* type_name, const char* name) {
  Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(type_name),
                             ObjectIdGetDatum(known.schema));
  Oid oid = GetSysCacheOid2(ENUMTYPOIDNAME, Anum_pg_enum_oid, ObjectIdGetDatum(type),
                            CStringGetDatum(name));
  if (!OidIsValid(oid)) elog(ERROR, "state \"%s\" is missing", name);
  return oid;
}

void load_catalog() {
  known.schema = get_namespace_oid("pulse", false);
  known.job = relation_named("job");
  known.job_key = relation_named("job_pkey");
  known.job_claim_idx = relation_named("job_claim_idx");
  known.job_running_idx = relation_named("job_running_idx");
  known.job_parked_idx = relation_named("job_parked_idx");
  known.job_parked_due_idx = relation_named("job_parked_due_idx");
  known.job_open_idx = relation_named("job_open_idx");
  known.job_waiting_key_idx = relation_named("job_waiting_key_idx");
  known.job_running_key_idx = relation_named("job_running_key_idx");
  known.has_index_lanes = get_attnum(known.job, "index_lane") == kJobIndexLane;
  known.claim_batch = known.has_index_lanes ? relation_named("claim_batch") : InvalidOid;
  known.claim_batch_idx = known.has_index_lanes ? relation_named("claim_batch_idx") : InvalidOid;
  known.state_ready = state_named("job_state", "ready");
  known.state_parked = state_named("job_state", "parked");
  known.state_running = state_named("job_state", "running");
  known.heartbeat = relation_named("heartbeat");
  known.heartbeat_key = relation_named("heartbeat_pkey");
  known.worker = relation_named("worker");
  known.worker_key = relation_named("worker_pkey");
  known.attempt = relation_named("attempt");
  known.finished_job = relation_named("finished_job");
  known.finished_completed = state_named("finished_state", "completed");
  known.finished_failed = state_named("finished_state", "failed");
  known.finished_quarantined = state_named("finished_state", "quarantined");
  known.finished_cancelled = state_named("finished_state", "cancelled");
  known.task = relation_named("task");
  known.task_key = relation_named("task_pkey");
  known.queue = relation_named("queue");
  known.queue_key = relation_named("queue_pkey");
  known.clock = relation_named("clock");
  known.token_seq = relation_named("token_seq");
  known.worker_id_seq = relation_named("worker_id_seq");
  known.attachment_seq = relation_named("attachment_seq");
  known.installation = get_relname_relid("installation", known.schema);
}

}  // namespace

const Catalog* catalog() {
  if (!is_registered) {
    CacheRegisterRelcacheCallback(pulse_relation_changed, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, pulse_namespace_changed, 0);
    is_registered = true;
  }
  while (!is_valid) {
    // An invalidation during the lookups repeats them; after an error the cache stays empty.
    known.generation = generation;
    load_catalog();
    is_valid = known.generation == generation;
  }
  return &known;
}

}  // namespace pulse
