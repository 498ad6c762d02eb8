#include "claim/claiming_worker.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "claim/in_place_claim.hpp"
#include "job/job_table.hpp"
#include "liveness/heartbeat.hpp"
#include "liveness/liveness_clock.hpp"
#include "server/advisory_lock.hpp"
#include "server/argument_checks.hpp"
#include "server/errors.hpp"
#include "server/hash.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "server/transaction_checks.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// The tasks of the worker that claimed last in this session. They never change after registration.
struct KnownTasks {
  int64 worker_id;
  Oid job;  // the oid of pulse.job, which tells installations apart
  ArrayType* tasks;
  bool valid;
};
KnownTasks known_tasks;

// Finds the row of this id and keeps it in `row` until close_row(). False when there is none.
bool open_row(IndexLookup* row, Oid table, Oid key_index, int64 id, Snapshot snapshot) {
  open_index_lookup(row, table_open(table, AccessShareLock), key_index, snapshot);
  return find_id(row, id);
}

void close_row(IndexLookup* row) {
  close_index_lookup(row);
  table_close(row->table, AccessShareLock);
}

[[noreturn]] void refuse_worker(const char* worker_id, const char* state) {
  ereport(ERROR, (errcode(kWorkerNotAlive), errmsg("worker %s is %s", worker_id, state),
                  errhint("Register anew with pulse.register_worker() and use the new id.")));
  pg_unreachable();
}

[[noreturn]] void refuse_worker(int64 worker_id, const char* state) {
  refuse_worker(psprintf(INT64_FORMAT, worker_id), state);
}

// The latest version of a heartbeat row.
struct LastBeat {
  Snapshot snapshot;
  IndexLookup row;
};

// Raises PU002 for a worker that is unknown, lost or stopped.
void open_last_beat(LastBeat* last, int64 worker_id) {
  CommandCounterIncrement();
  last->snapshot = RegisterSnapshot(GetLatestSnapshot());
  if (!open_row(&last->row, catalog()->heartbeat, catalog()->heartbeat_key, worker_id,
                last->snapshot))
    refuse_worker(worker_id, "unknown or stopped");
  if (status_is(last->row.row, "lost")) refuse_worker(worker_id, "lost");
  if (status_is(last->row.row, "stopped")) refuse_worker(worker_id, "stopped");
}

void close_last_beat(LastBeat* last) {
  close_row(&last->row);
  UnregisterSnapshot(last->snapshot);
}

int64 isolated_job_in(TupleTableSlot* beat) {
  bool isnull;
  Datum job_id = slot_getattr(beat, kBeatIsolatedJobId, &isnull);
  return isnull ? 0 : DatumGetInt64(job_id);
}

void name_tasks(ClaimingWorker* worker) {
  worker->task_bits = 0;
  worker->wake_group = 0;
  for (int i = 0; i < worker->task_count; i++) {
    text* task = DatumGetTextPP(worker->tasks[i]);
    worker->task_bits |= UINT64CONST(1) << task_bit(VARDATA_ANY(task), VARSIZE_ANY_EXHDR(task));
    worker->wake_group +=
        fnv1a(VARDATA_ANY(task), VARSIZE_ANY_EXHDR(task));  // order does not matter
  }
}

// The registered tasks, or NULL for every task.
ArrayType* registered_tasks(int64 worker_id) {
  if (known_tasks.valid && known_tasks.worker_id == worker_id && known_tasks.job == catalog()->job)
    return known_tasks.tasks;
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  IndexLookup worker;
  if (!open_row(&worker, catalog()->worker, catalog()->worker_key, worker_id, snapshot))
    refuse_worker(worker_id, "unknown");
  bool isnull;
  Datum tasks = slot_getattr(worker.row, kWorkerTasks, &isnull);
  known_tasks.valid = false;
  if (known_tasks.tasks) pfree(known_tasks.tasks);
  known_tasks.tasks = nullptr;
  MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
  if (!isnull) known_tasks.tasks = DatumGetArrayTypePCopy(tasks);
  MemoryContextSwitchTo(old);
  close_row(&worker);
  UnregisterSnapshot(snapshot);
  known_tasks.worker_id = worker_id;
  known_tasks.job = catalog()->job;
  known_tasks.valid = true;
  return known_tasks.tasks;
}

}  // namespace

void admit_worker(ClaimingWorker* worker, int64 worker_id) {
  worker->worker_id = worker_id;
  advisory_lock(LockKind::kWorker, static_cast<uint64>(worker_id), ShareLock);
  LastBeat last;
  open_last_beat(&last, worker_id);
  worker->draining = !status_is(last.row.row, "alive");
  worker->isolated_job_id = isolated_job_in(last.row.row);
  bool due = beat_is_due(last.row.row);
  close_last_beat(&last);
  if (due) beat_beside(worker_id);
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
  IndexLookup last;
  bool is_alive =
      open_row(&last, catalog()->heartbeat, catalog()->heartbeat_key, worker_id, snapshot) &&
      status_is(last.row, "alive");
  close_row(&last);
  return is_alive;
}

int64 isolated_job_of(int64 worker_id, Snapshot snapshot) {
  IndexLookup last;
  bool is_known =
      open_row(&last, catalog()->heartbeat, catalog()->heartbeat_key, worker_id, snapshot);
  int64 job_id = is_known ? isolated_job_in(last.row) : 0;
  close_row(&last);
  return job_id;
}

bool has_running_jobs(int64 worker_id, Relation job, Snapshot snapshot) {
  IndexLookup running;
  open_index_lookup(&running, job, catalog()->job_running_idx, snapshot);
  bool found = find_id(&running, worker_id);
  close_index_lookup(&running);
  return found || has_in_place_jobs(worker_id, job, snapshot);
}

void set_isolated_job(int64 worker_id, int64 job_id) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  Oid types[] = {INT8OID, INT8OID};
  Datum values[] = {Int64GetDatum(worker_id), Int64GetDatum(job_id)};
  char nulls[] = {' ', job_id ? ' ' : 'n'};
  if (SPI_execute_with_args("UPDATE pulse.heartbeat AS h SET isolated_job_id = $2"
                            " WHERE h.worker_id OPERATOR(pg_catalog.=) $1",
                            2, types, values, nulls, false, 0) != SPI_OK_UPDATE)
    elog(ERROR, "could not record which job runs isolated");
  SPI_finish();
}

}  // namespace pulse

// pulse._require_alive(worker_id): returns the worker's status, or raises PU002.
PULSE_FUNCTION(pulse_require_alive) {
  if (PG_ARGISNULL(0)) pulse::refuse_worker("NULL", "unknown or stopped");
  pulse::LastBeat last;
  pulse::open_last_beat(&last, PG_GETARG_INT64(0));
  text* status = DatumGetTextPCopy(pulse::value_of(last.row.row, pulse::kBeatStatus));
  pulse::close_last_beat(&last);
  PG_RETURN_TEXT_P(status);
}
