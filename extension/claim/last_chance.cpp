// The last chance (P7): a job that was present at all but one of the worker deaths it may be
// present at runs alone, so that if its worker dies once more, nobody else is hurt and the blame is
// exact.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "claim/claim.hpp"
#include "server/advisory_lock.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

bool has_last_chance(int crashes, int max_crashes) {
  return crashes > 0 && max_crashes >= 0 && crashes >= Max(max_crashes - 1, 1);
}

// Whether this worker holds nothing. Then no other claim of it begins until the transaction ends.
bool is_alone(int64 worker_id, const JobTable& table) {
  return !holds_jobs(worker_id, table.relation, table.snapshot) &&
         try_advisory_lock(LockKind::kWorker, static_cast<uint64>(worker_id), ExclusiveLock);
}

bool is_with(TupleTableSlot* row, int64 worker_id, Oid state) {
  bool isnull;
  Datum owner = slot_getattr(row, kJobWorkerId, &isnull);
  if (isnull || DatumGetInt64(owner) != worker_id) return false;
  return DatumGetObjectId(slot_getattr(row, kJobState, &isnull)) == state;
}

// Keeps this worker free for a poison suspect that waited too long for an idle one.
void reserve_if_overdue(Claim* claim, TaskCursor* cursor) {
  TupleTableSlot* row = cursor->scan.slot;
  int64 threshold_us = settings.sweep_threshold_ms * INT64CONST(1000);
  if (claim->stamp.now - cursor->scan.run_at <= threshold_us) return;
  bool unreserved;
  Datum owner = slot_getattr(row, kJobWorkerId, &unreserved);
  if (!unreserved && worker_is_alive(DatumGetInt64(owner), claim->table.snapshot)) return;
  if (!try_lock_row(&claim->table, row->tts_tid)) return;
  JobChange change = {};
  change.set(kJobWorkerId, Int64GetDatum(claim->worker.worker_id));
  update_locked_row(&claim->table, &change);
  set_isolated_job(claim->worker.worker_id, cursor->scan.id);
  claim->closed = true;
}

// Gives a worker the poison suspect that was kept for it, once it has become idle.
void take_reserved(Claim* claim, TupleTableSlot* row) {
  claim->closed = true;
  if (claim->start_jobs == 0 || !is_alone(claim->worker.worker_id, claim->table)) return;
  bool isnull;
  TaskCursor cursor = {};
  cursor.scan.slot = row;
  cursor.identifier = slot_getattr(row, kJobIdentifier, &isnull);
  text* name = DatumGetTextPP(cursor.identifier);
  cursor.bit = task_bit(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
  note_claimed(cursor.bit);
  take_row(claim, &cursor, row->tts_tid);
}

}  // namespace

bool is_poison_suspect(Claim* claim, TaskCursor* cursor) {
  int crashes = int2_of(cursor->scan.slot, kJobCrashes);
  // Most have none, and need no settings.
  return crashes > 0 && has_last_chance(crashes, settings_of(claim, cursor).max_crashes);
}

void consider_poison_suspect(Claim* claim, TaskCursor* cursor) {
  bool may_start = claim->claimed == 0 && claim->start_jobs > 0;
  if (!may_start || !is_alone(claim->worker.worker_id, claim->table)) {
    claim->poison_suspect_waits = true;
    reserve_if_overdue(claim, cursor);
    return;
  }
  note_claimed(cursor->bit);
  if (!take_row(claim, cursor, cursor->scan.slot->tts_tid)) return;
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
    bool isnull;
    TimestampTz run_at = DatumGetTimestampTz(slot_getattr(row, kJobRunAt, &isnull));
    if (is_with(row, worker_id, catalog()->state_running)) claim->closed = true;
    if (is_with(row, worker_id, catalog()->state_ready) && run_at <= claim->stamp.now)
      take_reserved(claim, row);
  }
  close_index_lookup(&jobs);
  if (!claim->closed) set_isolated_job(worker_id, 0);
}

namespace {

bool runs_alone_job(int64 worker_id, const JobTable& table) {
  int64 job_id = alone_job_of(worker_id, table.snapshot);
  if (job_id == 0) return false;
  IndexLookup jobs;
  open_index_lookup(&jobs, table.relation, catalog()->job_key, table.snapshot);
  bool runs = find_id(&jobs, job_id) && is_with(jobs.row, worker_id, catalog()->state_running);
  close_index_lookup(&jobs);
  return runs;
}

// For a claim of one job that is locked: false when the worker may have it, which is noted then.
bool must_wait_alone(const JobValue& job, int64 worker_id) {
  JobTable table;
  open_job_table(&table);
  TaskSettings task = task_settings(job.values[kJobIdentifier - 1], table.snapshot);
  bool is_last = has_last_chance(DatumGetInt16(job.values[kJobCrashes - 1]), task.max_crashes);
  bool waits = runs_alone_job(worker_id, table) || (is_last && !is_alone(worker_id, table));
  close_job_table(&table);
  if (is_last && !waits) set_isolated_job(worker_id, DatumGetInt64(job.values[kJobId - 1]));
  return waits;
}

}  // namespace
}  // namespace pulse

// pulse._must_wait_isolated(job, worker_id): the rule of the last chance for claim_job().
PULSE_FUNCTION(pulse_must_wait_alone) {
  pulse::JobValue job;
  pulse::read_job(&job, PG_GETARG_HEAPTUPLEHEADER(0));
  PG_RETURN_BOOL(pulse::must_wait_alone(job, PG_GETARG_INT64(1)));
}
