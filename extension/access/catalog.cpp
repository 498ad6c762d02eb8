#include "access/catalog.hpp"

#include "access/columns.hpp"
#include "access/sql_version.hpp"

extern "C" {
#include "catalog/pg_proc.h"
}

namespace pulse {

Catalog known_catalog;
bool is_catalog_known = false;

namespace {

struct KnownRelation {
  Oid Catalog::*oid;
  const char* name;
  bool is_in_0_1_0 = true;
};
constexpr KnownRelation kRelations[] = {
    {&Catalog::job, "job"},
    {&Catalog::job_key, "job_pkey"},
    {&Catalog::job_claim_idx, "job_claim_idx"},
    {&Catalog::job_running_idx, "job_running_idx"},
    {&Catalog::job_parked_idx, "job_parked_idx"},
    {&Catalog::job_parked_due_idx, "job_parked_due_idx"},
    {&Catalog::job_open_idx, "job_open_idx"},
    {&Catalog::job_waiting_key_idx, "job_waiting_key_idx"},
    {&Catalog::job_running_key_idx, "job_running_key_idx"},
    {&Catalog::job_start_by_idx, "job_start_by_idx", false},
    {&Catalog::job_waits_idx, "job_waits_idx", false},
    {&Catalog::job_successor_idx, "job_successor_idx", false},
    {&Catalog::job_undecided_idx, "job_undecided_idx", false},
    {&Catalog::claim_batch, "claim_batch", false},
    {&Catalog::claim_batch_idx, "claim_batch_idx", false},
    {&Catalog::heartbeat, "heartbeat"},
    {&Catalog::heartbeat_key, "heartbeat_pkey"},
    {&Catalog::worker, "worker"},
    {&Catalog::worker_key, "worker_pkey"},
    {&Catalog::attempt, "attempt"},
    {&Catalog::finished_job, "finished_job"},
    {&Catalog::task, "task"},
    {&Catalog::task_key, "task_pkey"},
    {&Catalog::queue, "queue"},
    {&Catalog::queue_key, "queue_pkey"},
    {&Catalog::queue_pause, "queue_pause", false},
    {&Catalog::queue_pause_key, "queue_pause_pkey", false},
    {&Catalog::queue_rate, "queue_rate", false},
    {&Catalog::queue_rate_key, "queue_rate_pkey", false},
    {&Catalog::clock, "clock"},
    {&Catalog::job_id_seq, "job_id_seq"},
    {&Catalog::token_seq, "token_seq"},
    {&Catalog::worker_id_seq, "worker_id_seq"},
    {&Catalog::attachment_seq, "attachment_seq"},
    {&Catalog::id_place_seq, "id_place_seq", false},
    {&Catalog::installation, "installation", false},
    {&Catalog::dependency, "dependency", false},
    {&Catalog::dependency_parent_idx, "dependency_parent_idx", false},
    {&Catalog::superseded_job, "superseded_job", false},
    {&Catalog::superseded_job_key, "superseded_job_pkey", false},
    {&Catalog::remembered_key, "remembered_key", false},
    {&Catalog::remembered_key_key, "remembered_key_pkey", false},
};

uint64 generation = 1;  // of the oids that catalog() reads next
bool is_registered = false;

void invalidate() {
  is_catalog_known = false;
  generation++;
}

// A change of any of these relations empties the cache, and so does a change of an unnamed
// relation: REINDEX CONCURRENTLY gives an index another oid. Must not raise, because any lock of a
// relation may call this function.
extern "C" void pulse_relation_changed(Datum, Oid changed) {
  if (changed == InvalidOid) return invalidate();
  for (const auto& relation : kRelations)
    if (known_catalog.*relation.oid == changed) return invalidate();
}

extern "C" void pulse_namespace_changed(Datum, int, uint32) { invalidate(); }

Oid relation_named(const char* name) {
  Oid oid = get_relname_relid(name, known_catalog.schema);
  if (!OidIsValid(oid))
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"pulse.%s\" is missing", name),
             errhint("Install the extension again: CREATE EXTENSION pg_pulse.")));
  return oid;
}

Oid state_named(const char* type_name, const char* name) {
  Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(type_name),
                             ObjectIdGetDatum(known_catalog.schema));
  Oid oid = GetSysCacheOid2(ENUMTYPOIDNAME, Anum_pg_enum_oid, ObjectIdGetDatum(type),
                            CStringGetDatum(name));
  if (!OidIsValid(oid)) elog(ERROR, "state \"%s\" is missing", name);
  return oid;
}

// InvalidOid in 0.1.0.
Oid trigger_function(const char* name) {
  oidvector* none = buildoidvector(nullptr, 0);
  return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                         PointerGetDatum(none),
                         ObjectIdGetDatum(get_namespace_oid("pulse_internal", true)));
}

void load_catalog() {
  require_served_sql();
  known_catalog.schema = get_namespace_oid("pulse", false);
  for (const auto& relation : kRelations)
    known_catalog.*relation.oid = relation.is_in_0_1_0
                                      ? relation_named(relation.name)
                                      : get_relname_relid(relation.name, known_catalog.schema);
  known_catalog.has_index_lanes = get_attnum(known_catalog.job, "index_lane") == kJobIndexLane;
  known_catalog.task_queue = get_attnum(known_catalog.task, "queue");
  known_catalog.task_dead_letter = get_attnum(known_catalog.task, "dead_letter");
  known_catalog.queue_total = get_attnum(known_catalog.queue, "total");
  known_catalog.queue_is_level = get_attnum(known_catalog.queue, "is_level");
  known_catalog.queue_strict = get_attnum(known_catalog.queue, "is_strict");
  known_catalog.queue_fair = get_attnum(known_catalog.queue, "fair");
  known_catalog.queue_weight = get_attnum(known_catalog.queue, "weight");
  known_catalog.queue_setting_rate = get_attnum(known_catalog.queue, "rate");
  known_catalog.queue_setting_per = get_attnum(known_catalog.queue, "per");
  known_catalog.queue_setting_burst = get_attnum(known_catalog.queue, "burst");
  known_catalog.count_written_job =
      known_catalog.has_index_lanes ? trigger_function("count_written_job") : InvalidOid;
  known_catalog.state_ready = state_named("job_state", "ready");
  known_catalog.state_parked = state_named("job_state", "parked");
  known_catalog.state_running = state_named("job_state", "running");
  known_catalog.finished_completed = state_named("finished_state", "completed");
  known_catalog.finished_failed = state_named("finished_state", "failed");
  known_catalog.finished_quarantined = state_named("finished_state", "quarantined");
  known_catalog.finished_cancelled = state_named("finished_state", "cancelled");
}

}  // namespace

const Catalog* read_catalog() {
  if (!is_registered) {
    CacheRegisterRelcacheCallback(pulse_relation_changed, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, pulse_namespace_changed, 0);
    is_registered = true;
  }
  while (!is_catalog_known) {
    // An invalidation during the lookups repeats the lookups; after an error the cache stays empty.
    known_catalog.generation = generation;
    load_catalog();
    is_catalog_known = known_catalog.generation == generation;
  }
  return &known_catalog;
}

Oid clock_table() {
  if (is_catalog_known) return known_catalog.clock;
  require_served_sql();
  return get_relname_relid("clock", get_namespace_oid("pulse", false));
}

bool may_be_0_1_0() { return !is_catalog_known || !known_catalog.has_index_lanes; }

// Asks the job table for the version: with 0.1.0, another role may own a schema pulse_internal.
Oid internal_function(const char* name, int count, const Oid* types) {
  bool is_0_1_0 = !catalog()->has_index_lanes;
  List* path = list_make2(makeString(pstrdup(is_0_1_0 ? "pulse" : "pulse_internal")),
                          makeString(psprintf(is_0_1_0 ? "_%s" : "%s", name)));
  return LookupFuncName(path, count, types, false);
}

}  // namespace pulse
