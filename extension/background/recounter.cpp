// The process that recounts the depths of one database, and ends. The recounter reads the whole
// table of jobs under one snapshot. A session that finds the counts missing or drifted starts it,
// and where sessions read counts a sweep starts it at intervals (counters/recounts.cpp).
//
// The recounter keeps no other session from the table for long: it waits for no lock, and gives up
// when another session waits for a lock of the table or needs the database alone.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/extension_tables.hpp"
#include "background/process.hpp"
#include "counters/noted_depths.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

constexpr int kRowsBetweenChecks = 50000;

// The last name of a kind: jobs of a page mostly share it.
struct LastDepth {
  bool is_known;
  DepthKey key;
  Depth* depth;
};

Depth* depth_named(DepthKind kind, Datum name, LastDepth* last) {
  const text* of = DatumGetTextPP(name);
  auto length = static_cast<int>(VARSIZE_ANY_EXHDR(of));
  DepthKey key = depth_key(VARDATA_ANY(of), length);
  if (!last->is_known || last->key.name != key.name)
    *last = {true, key, depth_of(kind, key, VARDATA_ANY(of), length)};
  return last->depth;
}

// A session that waits for the table has moved this process's lock out of the fast path.
bool has_waiters(Relation table) {
  LOCKTAG tag;
  SET_LOCKTAG_RELATION(tag, MyDatabaseId, RelationGetRelid(table));
  bool has_waiter = false;
  visit_own_locks(LockHashPartition(LockTagHashCode(&tag)), [&](const PROCLOCK* own) {
    const LOCK* lock = own->tag.myLock;
    if (memcmp(&lock->tag, &tag, sizeof(tag)) == 0 && lock->waitMask != 0) has_waiter = true;
  });
  return has_waiter;
}

bool is_wanted_by_others(Relation job) {
  return has_waiters(job) || database_is_wanted(MyDatabaseId);
}

// False when the recounter gave up.
bool recount_rows(Relation job, Snapshot snapshot) {
  LastDepth last[kDepthKinds] = {};
  TupleTableSlot* tuple = table_slot_create(job, nullptr);
  TableScanDesc scan = table_beginscan_strat(job, snapshot, 0, nullptr, true, false);
  bool is_counted = true;
  for (int64 rows = 1; is_counted && table_scan_getnextslot(scan, ForwardScanDirection, tuple);
       rows++) {
    CHECK_FOR_INTERRUPTS();
    DepthRow row = depth_row(tuple);
    DepthState state = depth_state(row);
    add_recounted(kTaskDepth, depth_named(kTaskDepth, row.identifier, &last[kTaskDepth]), state,
                  row.run_at);
    if (!row.queue_name.isnull)
      add_recounted(kQueueDepth, depth_named(kQueueDepth, row.queue_name.value, &last[kQueueDepth]),
                    state, row.run_at);
    is_counted = rows % kRowsBetweenChecks != 0 || !is_wanted_by_others(job);
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(tuple);
  return is_counted;
}

bool is_installed() {
  PushActiveSnapshot(GetTransactionSnapshot());
  Oid extension = find_extension_tables().extension;
  PopActiveSnapshot();
  return OidIsValid(extension) && catalog()->has_index_lanes;
}

// Needs a transaction.
void recount() {
  if (!is_installed()) return;
  int64 began = processor_us();
  Oid table = catalog()->job;
  if (database_is_wanted(MyDatabaseId) || !ConditionalLockRelationOid(table, AccessShareLock))
    return;
  // Null when the extension was dropped before the lock was taken.
  Relation job = try_relation_open(table, NoLock);
  if (!job) return;
  if (Snapshot snapshot = begin_recount()) {
    pgstat_report_activity(STATE_RUNNING, "counts the jobs of pulse.job");
    PushActiveSnapshot(snapshot);
    if (recount_rows(job, snapshot)) end_recount(table, processor_us() - began);
    PopActiveSnapshot();
    UnregisterSnapshot(snapshot);
  }
  table_close(job, NoLock);
}

}  // namespace
}  // namespace pulse

extern "C" PGDLLEXPORT void pulse_recounter_main(Datum database);

void pulse_recounter_main(Datum database) {
  pulse::start_background_process();
  // As for ANALYZE: the table's statistics tell the sequential scans of queries.
  SetConfigOption("track_counts", "off", PGC_SUSET, PGC_S_OVERRIDE);
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid,
                                            BGWORKER_BYPASS_ALLOWCONN);
  // One process of the server recounts at a time.
  if (!pulse::try_publish_process(pulse::recounting_process())) proc_exit(0);
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  pulse::recount();
  CommitTransactionCommand();
  pgstat_report_stat(true);
  proc_exit(0);
}
