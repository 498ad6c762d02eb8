#include "claim/claiming_worker.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "access/local_settings.hpp"
#include "job/table.hpp"
#include "liveness/heartbeat.hpp"
#include "server/advisory_lock.hpp"
#include "server/call_checks.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

// The tasks of the worker that claimed last in this session. A trigger of pulse.worker invalidates
// the catalog of every session when the tasks of a worker change.
struct KnownTasks {
  int64 worker_id;    // 0: no worker is known
  uint64 generation;  // of the catalog
  ArrayType* tasks;
};
KnownTasks known_tasks;

// Calls use(row) with the row of this id. False when the table has no such row.
template <typename Use>
bool with_row(Oid table_oid, Oid Catalog::*key_index, int64 id, Snapshot snapshot, Use use) {
  Relation table = table_open(table_oid, AccessShareLock);
  IndexLookup rows;
  open_index_lookup(&rows, table, catalog()->*key_index, snapshot);
  bool is_found = find_id(&rows, id);
  if (is_found) use(rows.row);
  close_index_lookup(&rows);
  table_close(table, AccessShareLock);
  return is_found;
}

template <typename Use>
bool with_beat(int64 worker_id, Snapshot snapshot, Use use) {
  return with_row(catalog()->heartbeat, &Catalog::heartbeat_key, worker_id, snapshot, use);
}

[[noreturn]] void refuse_worker(const char* worker_id, const char* state) {
  ereport(ERROR, (errcode(kWorkerNotAlive), errmsg("worker %s is %s", worker_id, state),
                  errhint("Register anew with pulse.register_worker() and use the new id.")));
  pg_unreachable();
}

[[noreturn]] void refuse_worker(int64 worker_id, const char* state) {
  refuse_worker(psprintf(INT64_FORMAT, worker_id), state);
}

// Calls use(row) with the latest version of the heartbeat row. Raises PU002 for a worker that is
// unknown, lost or stopped.
template <typename Use>
void with_last_beat(int64 worker_id, Use use) {
  CommandCounterIncrement();
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  bool is_known = with_beat(worker_id, snapshot, [&](TupleTableSlot* beat) {
    if (status_is(beat, "lost")) refuse_worker(worker_id, "lost");
    if (status_is(beat, "stopped")) refuse_worker(worker_id, "stopped");
    use(beat);
  });
  if (!is_known) refuse_worker(worker_id, "unknown or stopped");
  UnregisterSnapshot(snapshot);
}

int64 isolated_job_in(TupleTableSlot* beat) {
  if (slot_attisnull(beat, kBeatIsolatedJobId)) return 0;
  return DatumGetInt64(value_of(beat, kBeatIsolatedJobId));
}

void name_tasks(ClaimingWorker* worker) {
  worker->task_bits = 0;
  worker->wake_group = 0;
  for (int i = 0; i < worker->task_count; i++) {
    text* task = DatumGetTextPP(worker->tasks[i]);
    worker->task_bits |= UINT64CONST(1) << task_bit(task);
    worker->wake_group += fnv1a(task);  // order does not matter
  }
}

// The registered tasks, or NULL for every task.
ArrayType* registered_tasks(int64 worker_id) {
  uint64 generation = catalog()->generation;
  if (known_tasks.worker_id == worker_id && known_tasks.generation == generation)
    return known_tasks.tasks;
  if (known_tasks.tasks) pfree(known_tasks.tasks);
  known_tasks = {};
  auto remember = [](TupleTableSlot* worker) {
    if (slot_attisnull(worker, kWorkerTasks)) return;
    MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
    known_tasks.tasks = DatumGetArrayTypePCopy(value_of(worker, kWorkerTasks));
    MemoryContextSwitchTo(old);
  };
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  if (!with_row(catalog()->worker, &Catalog::worker_key, worker_id, snapshot, remember))
    refuse_worker(worker_id, "unknown");
  UnregisterSnapshot(snapshot);
  known_tasks.worker_id = worker_id;
  known_tasks.generation = generation;
  return known_tasks.tasks;
}

}  // namespace

void admit_worker(ClaimingWorker* worker, int64 worker_id) {
  worker->worker_id = worker_id;
  advisory_lock(LockKind::kWorker, static_cast<uint64>(worker_id), ShareLock);
  with_last_beat(worker_id, [&](TupleTableSlot* beat) {
    worker->draining = !status_is(beat, "alive");
    worker->isolated_job_id = isolated_job_in(beat);
    worker->must_beat = claim_beat_is_due(beat);
  });
}

void beat_for_claim(const ClaimingWorker& worker) {
  if (worker.must_beat) beat_beside(worker.worker_id, claim_beat_is_due);
}

void choose_tasks(ClaimingWorker* worker, ArrayType* given) {
  ArrayType* tasks = given ? given : registered_tasks(worker->worker_id);
  if (!tasks) {
    worker->tasks = nullptr;
    worker->task_count = kEveryTask;
    worker->task_bits = worker->wake_group = ~UINT64CONST(0);
    return;
  }
  worker->tasks = text_elements(tasks, "tasks", &worker->task_count);
  name_tasks(worker);
}

bool worker_is_alive(int64 worker_id, Snapshot snapshot) {
  bool is_alive = false;
  (void)with_beat(worker_id, snapshot,
                  [&](TupleTableSlot* beat) { is_alive = status_is(beat, "alive"); });
  return is_alive;
}

int64 isolated_job_of(int64 worker_id, Snapshot snapshot) {
  int64 job_id = 0;
  (void)with_beat(worker_id, snapshot,
                  [&](TupleTableSlot* beat) { job_id = isolated_job_in(beat); });
  return job_id;
}

void set_isolated_job(int64 worker_id, int64 job_id) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  Oid types[] = {INT8OID, INT8OID};
  Datum values[] = {Int64GetDatum(worker_id), Int64GetDatum(job_id)};
  char nulls[] = {' ', job_id ? ' ' : 'n'};
  int done = 0;
  under_statement_settings([&] {
    done = SPI_execute_with_args(
        "UPDATE pulse.heartbeat AS h SET isolated_job_id = $2"
        " WHERE h.worker_id = $1",
        2, types, values, nulls, false, 0);
  });
  if (done != SPI_OK_UPDATE) elog(ERROR, "could not record which job runs isolated");
  SPI_finish();
}

}  // namespace pulse

// pulse_internal.require_alive(worker_id): returns the worker's status, or raises PU002.
PULSE_FUNCTION(pulse_require_alive) {
  if (PG_ARGISNULL(0)) pulse::refuse_worker("NULL", "unknown or stopped");
  text* status = nullptr;
  pulse::with_last_beat(PG_GETARG_INT64(0), [&](TupleTableSlot* beat) {
    status = DatumGetTextPCopy(pulse::value_of(beat, pulse::kBeatStatus));
  });
  PG_RETURN_TEXT_P(status);
}
