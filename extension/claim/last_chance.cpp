// The last chance (P7): a job that a further crash would quarantine runs isolated. If the worker of
// an isolated job dies, no other job is hurt, and the isolated job certainly caused the crash.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "claim/claim.hpp"
#include "claim/in_place_claim.hpp"
#include "server/advisory_lock.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

bool is_suspect(int crashes, int max_crashes) {
  return crashes > 0 && max_crashes >= 0 && crashes >= Max(max_crashes - 1, 1);
}

// Whether the worker runs no job. If so, the worker gets no other claim until this transaction
// ends.
bool is_idle(int64 worker_id, const JobTable& table) {
  return !has_running_jobs(worker_id, table.relation, table.snapshot) &&
         try_advisory_lock(LockKind::kWorker, static_cast<uint64>(worker_id), ExclusiveLock);
}

bool is_with(TupleTableSlot* row, int64 worker_id, Oid state) {
  return !slot_attisnull(row, kJobWorkerId) &&
         DatumGetInt64(value_of(row, kJobWorkerId)) == worker_id &&
         DatumGetObjectId(value_of(row, kJobState)) == state;
}

// Reserves the worker for a poison suspect, if the suspect has waited too long for an idle worker.
void reserve_if_overdue(Claim* claim, TaskCursor* cursor) {
  TupleTableSlot* row = cursor->scan.row;
  int64 threshold_us = settings.sweep_threshold_ms * INT64CONST(1000);
  if (claim->stamp.now - cursor->scan.run_at <= threshold_us) return;
  if (!slot_attisnull(row, kJobWorkerId) &&
      worker_is_alive(DatumGetInt64(value_of(row, kJobWorkerId)), claim->table.snapshot))
    return;
  if (!try_lock_row(&claim->table, row->tts_tid)) return;
  JobChange change = {};
  change.set(kJobWorkerId, Int64GetDatum(claim->worker.worker_id));
  update_locked_row(&claim->table, &change);
  set_isolated_job(claim->worker.worker_id, cursor->scan.id);
  claim->closed = true;
}

// Gives the worker the poison suspect of its reservation, once the worker is idle.
void take_reserved(Claim* claim, TupleTableSlot* row) {
  claim->closed = true;
  if (claim->start_jobs == 0 || !is_idle(claim->worker.worker_id, claim->table)) return;
  TaskCursor cursor = {};
  cursor.scan.row = row;
  cursor.identifier = value_of(row, kJobIdentifier);
  cursor.bit = task_bit(DatumGetTextPP(cursor.identifier));
  note_claimed(cursor.bit);
  take_row(claim, &cursor, row->tts_tid);
}

bool runs_isolated_job(int64 worker_id, const JobTable& table) {
  int64 job_id = isolated_job_of(worker_id, table.snapshot);
  if (job_id == 0) return false;
  IndexLookup jobs;
  open_index_lookup(&jobs, table.relation, catalog()->job_key, table.snapshot);
  bool runs = find_id(&jobs, job_id) && is_with(jobs.row, worker_id, catalog()->state_running);
  close_index_lookup(&jobs);
  return runs;
}

// For a claim of one locked job. False when the worker may have the job; the worker's heartbeat row
// then records a poison suspect as the isolated job.
bool must_wait_isolated(const RowValue& job, int64 worker_id) {
  JobTable table;
  open_job_table(&table);
  TaskSettings task = task_settings(job.value(kJobIdentifier), table.snapshot);
  bool is_last = is_suspect(DatumGetInt16(job.value(kJobCrashes)), task.max_crashes);
  bool waits = runs_isolated_job(worker_id, table) || (is_last && !is_idle(worker_id, table));
  close_job_table(&table);
  if (is_last && !waits) set_isolated_job(worker_id, DatumGetInt64(job.value(kJobId)));
  return waits;
}

}  // namespace

bool is_poison_suspect(Claim* claim, TaskCursor* cursor) {
  int crashes = int2_of(cursor->scan.row, kJobCrashes);
  // Most jobs have no crash, and need no settings.
  return crashes > 0 && is_suspect(crashes, settings_of(claim, cursor).max_crashes);
}

void consider_poison_suspect(Claim* claim, TaskCursor* cursor) {
  bool may_start = claim->claimed == 0 && claim->start_jobs > 0;
  if (!may_start || !is_idle(claim->worker.worker_id, claim->table)) {
    claim->poison_suspect_waits = true;
    reserve_if_overdue(claim, cursor);
    return;
  }
  note_claimed(cursor->bit);
  if (!take_row(claim, cursor, cursor->scan.row->tts_tid)) return;
  set_isolated_job(claim->worker.worker_id, cursor->scan.id);
  claim->closed = true;
}

void check_isolated_job(Claim* claim) {
  int64 job_id = claim->worker.isolated_job_id;
  int64 worker_id = claim->worker.worker_id;
  if (job_id == 0) return;
  IndexLookup jobs;
  open_index_lookup(&jobs, claim->table.relation, catalog()->job_key, claim->table.snapshot);
  if (find_id(&jobs, job_id)) {
    TupleTableSlot* row = jobs.row;
    TimestampTz run_at = DatumGetTimestampTz(value_of(row, kJobRunAt));
    if (is_with(row, worker_id, catalog()->state_running)) claim->closed = true;
    if (is_with(row, worker_id, catalog()->state_ready) && run_at <= claim->stamp.now)
      take_reserved(claim, row);
  }
  close_index_lookup(&jobs);
  if (!claim->closed) set_isolated_job(worker_id, 0);
}

}  // namespace pulse

// pulse_internal.must_wait_isolated(job, worker_id): the rule of the last chance for claim_job().
PULSE_FUNCTION(pulse_must_wait_alone) {
  pulse::RowValue job;
  pulse::read_row_value(&job, pulse::header_of(PG_GETARG_DATUM(0)), "job");
  PG_RETURN_BOOL(pulse::must_wait_isolated(job, PG_GETARG_INT64(1)));
}

// pulse_internal.is_suspect(crashes, max_crashes)
PULSE_FUNCTION(pulse_is_suspect) {
  PG_RETURN_BOOL(pulse::is_suspect(PG_GETARG_INT32(0), PG_GETARG_INT32(1)));
}
