#include "finish/running_job.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/key_lock.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

void reopen_with_new_snapshot(RunningJobs* jobs) {
  close_index_lookup(&jobs->ids);
  UnregisterSnapshot(jobs->table.snapshot);
  CommandCounterIncrement();
  jobs->table.snapshot =
      RegisterSnapshot(jobs->keeps_snapshot ? GetTransactionSnapshot() : GetLatestSnapshot());
  open_index_lookup(&jobs->ids, jobs->table.relation, catalog()->job_key, jobs->table.snapshot);
}

bool matches(TupleTableSlot* row, const NullableDatum& token) {
  if (DatumGetObjectId(value_of(row, kJobState)) != catalog()->state_running) return false;
  if (token.isnull) return true;
  return !slot_attisnull(row, kJobToken) &&
         DatumGetInt64(value_of(row, kJobToken)) == DatumGetInt64(token.value);
}

// Functions of 0.1.0 hold the lock of a key until their transaction ends, and take it before the
// row's lock. The row may change during the wait, so the snapshot is taken anew.
void wait_for_key(RunningJobs* jobs, int64 job_id, const NullableDatum& token) {
  TupleTableSlot* row = jobs->ids.row;
  if (!find_attempt(jobs, job_id, token) || slot_attisnull(row, kJobKey)) return;
  (void)lock_key_for_0_1_0(DatumGetTextPP(value_of(row, kJobKey)), true);
  reopen_with_new_snapshot(jobs);
}

bool has_key_lock(TupleTableSlot* row) {
  return catalog()->has_index_lanes || slot_attisnull(row, kJobKey) ||
         lock_key_for_0_1_0(DatumGetTextPP(value_of(row, kJobKey)), false);
}

}  // namespace

void open_running_jobs(RunningJobs* jobs, bool keeps_snapshot) {
  open_job_table(&jobs->table);
  open_index_lookup(&jobs->ids, jobs->table.relation, catalog()->job_key, jobs->table.snapshot);
  jobs->keeps_snapshot = keeps_snapshot;
  if (keeps_snapshot) reopen_with_new_snapshot(jobs);
}

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
  if (waits && !catalog()->has_index_lanes) wait_for_key(jobs, job_id, token);
  while (find_attempt(jobs, job_id, token)) {
    TM_Result result =
        lock_row(&jobs->table, jobs->ids.row->tts_tid, waits ? LockWaitBlock : LockWaitSkip);
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

}  // namespace pulse
