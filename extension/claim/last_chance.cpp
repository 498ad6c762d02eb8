// The last chance (P7): a job that was present at all but one of the worker deaths it may be
// present at runs alone, so that if its worker dies once more, nobody else is hurt and the blame is
// exact.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "claim/claim.hpp"
#include "server/advisory_lock.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// Keeps this worker free for a poison suspect that waited too long for an idle one.
void reserve_if_overdue(Claim* claim, TaskCursor* cursor) {
  TupleTableSlot* row = cursor->scan.slot;
  int64 threshold_us = settings.sweep_threshold_ms * INT64CONST(1000);
  if (claim->now - cursor->scan.run_at <= threshold_us) return;
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
  if (claim->start_jobs == 0 ||
      holds_jobs(claim->worker.worker_id, claim->table.relation, claim->table.snapshot) ||
      !try_advisory_lock(LockKind::kWorker, static_cast<uint64>(claim->worker.worker_id),
                         ExclusiveLock))
    return;
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
  if (crashes == 0) return false;
  int limit = settings_of(claim, cursor).max_crashes;
  return limit >= 0 && crashes >= Max(limit - 1, 1);
}

void consider_poison_suspect(Claim* claim, TaskCursor* cursor) {
  bool idle = claim->claimed == 0 && claim->start_jobs > 0 &&
              !holds_jobs(claim->worker.worker_id, claim->table.relation, claim->table.snapshot);
  // Alone also means beside no other claim of this worker that is under way.
  if (!idle || !try_advisory_lock(LockKind::kWorker, static_cast<uint64>(claim->worker.worker_id),
                                  ExclusiveLock)) {
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
  if (job_id == 0) return;
  IndexLookup jobs;
  open_index_lookup(&jobs, claim->table.relation, catalog()->job_key, claim->table.snapshot);
  if (find_id(&jobs, job_id)) {
    TupleTableSlot* row = jobs.row;
    bool isnull;
    Datum owner = slot_getattr(row, kJobWorkerId, &isnull);
    bool mine = !isnull && DatumGetInt64(owner) == claim->worker.worker_id;
    Oid state = DatumGetObjectId(slot_getattr(row, kJobState, &isnull));
    TimestampTz run_at = DatumGetTimestampTz(slot_getattr(row, kJobRunAt, &isnull));
    if (mine && state == catalog()->state_running) claim->closed = true;
    if (mine && state == catalog()->state_ready && run_at <= claim->now) take_reserved(claim, row);
  }
  close_index_lookup(&jobs);
  if (!claim->closed) set_isolated_job(claim->worker.worker_id, 0);
}

}  // namespace pulse
