#include "finish/running_job.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "claim/due_scan.hpp"
#include "job/key_lock.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

Snapshot new_snapshot(const RunningJobs* jobs) {
  CommandCounterIncrement();
  return RegisterSnapshot(jobs->keeps_snapshot ? GetTransactionSnapshot() : GetLatestSnapshot());
}

void open(RunningJobs* jobs, bool keeps_snapshot) {
  open_job_table(&jobs->table);
  jobs->keeps_snapshot = keeps_snapshot;
  if (keeps_snapshot) {
    UnregisterSnapshot(jobs->table.snapshot);
    jobs->table.snapshot = new_snapshot(jobs);
  }
  open_index_lookup(&jobs->ids, jobs->table.relation, catalog()->job_key, jobs->table.snapshot);
}

void reopen_with_new_snapshot(RunningJobs* jobs) {
  close_index_lookup(&jobs->ids);
  UnregisterSnapshot(jobs->table.snapshot);
  jobs->table.snapshot = new_snapshot(jobs);
  open_index_lookup(&jobs->ids, jobs->table.relation, catalog()->job_key, jobs->table.snapshot);
}

bool matches(TupleTableSlot* row, const NullableDatum& token) {
  if (DatumGetObjectId(value_of(row, kJobState)) != catalog()->state_running) return false;
  if (token.isnull) return true;
  return !slot_attisnull(row, kJobToken) &&
         DatumGetInt64(value_of(row, kJobToken)) == DatumGetInt64(token.value);
}

// The key of a row, or NULL.
text* key_of(TupleTableSlot* row) {
  return slot_attisnull(row, kJobKey) ? nullptr : DatumGetTextPP(value_of(row, kJobKey));
}

// Locks the key of the job. The row may change during the wait, so the snapshot is taken anew.
void wait_for_key(RunningJobs* jobs, int64 job_id, const NullableDatum& token) {
  if (!find_attempt(jobs, job_id, token)) return;
  text* key = key_of(jobs->ids.row);
  if (!key) return;
  lock_key(key);
  reopen_with_new_snapshot(jobs);
}

bool has_key_lock(TupleTableSlot* row) {
  text* key = key_of(row);
  return !key || try_lock_key(key);
}

// Locks the row version that the snapshot shows.
TM_Result lock_row(RunningJobs* jobs, Patience patience) {
  JobTable* table = &jobs->table;
  TM_FailureData failure;
  ItemPointerData tid = jobs->ids.row->tts_tid;
  LockWaitPolicy policy = patience == Patience::kWaits ? LockWaitBlock : LockWaitSkip;
  return table_tuple_lock(table->relation, &tid, table->snapshot, table->locked,
                          GetCurrentCommandId(false), LockTupleNoKeyExclusive, policy, 0, &failure);
}

}  // namespace

void open_running_jobs(RunningJobs* jobs) { open(jobs, IsolationUsesXactSnapshot()); }

void open_running_jobs_anew(RunningJobs* jobs) { open(jobs, false); }

void close_running_jobs(RunningJobs* jobs) {
  close_index_lookup(&jobs->ids);
  close_job_table(&jobs->table);
}

bool find_attempt(RunningJobs* jobs, int64 job_id, const NullableDatum& token) {
  return find_id(&jobs->ids, job_id) && matches(jobs->ids.row, token);
}

AttemptLock lock_attempt(RunningJobs* jobs, int64 job_id, const NullableDatum& token,
                         Patience patience) {
  bool waits = patience == Patience::kWaits;
  if (waits) wait_for_key(jobs, job_id, token);
  while (find_attempt(jobs, job_id, token)) {
    TM_Result result = lock_row(jobs, patience);
    if (result == TM_Ok)
      return waits || has_key_lock(jobs->table.locked) ? AttemptLock::kLocked : AttemptLock::kBusy;
    if (result == TM_WouldBlock) return AttemptLock::kBusy;
    if (result != TM_Updated && result != TM_Deleted) return AttemptLock::kNotRunning;
    renew_snapshot(jobs);
  }
  return AttemptLock::kNotRunning;
}

void renew_snapshot(RunningJobs* jobs) {
  if (jobs->keeps_snapshot)
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not serialize access due to concurrent update")));
  reopen_with_new_snapshot(jobs);
}

bool is_key_taken(RunningJobs* jobs, Datum key) {
  Snapshot snapshot = new_snapshot(jobs);
  bool is_taken = false;
  with_row_of_text(jobs->table.relation, catalog()->job_waiting_key_idx, key, snapshot,
                   [&is_taken](TupleTableSlot*) { is_taken = true; });
  UnregisterSnapshot(snapshot);
  return is_taken;
}

}  // namespace pulse
