// pulse.complete and pulse.complete_many: see sql/worker/finish.sql for the contract of both. A
// completion wins over a cancellation and over a superseded key. It deletes the row, and records
// the job if its task or a setting keeps completed jobs.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "claim/in_place_claim.hpp"
#include "counters/noted_attempts.hpp"
#include "finish/attempt_record.hpp"
#include "finish/claim_list.hpp"
#include "job/key_lock.hpp"
#include "job/task_settings.hpp"
#include "server/call_checks.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/end_waiters.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

enum Argument { kIds, kTokens, kResults, kArguments };

struct Completion {
  RunningJobs jobs;
  AttemptRecords records;
  bool may_keep;
  InPlaceEnd* in_place;  // the completed jobs that were claimed in place
  int in_place_count;
};

bool is_kept(Completion* completion, TupleTableSlot* row) {
  return completion->may_keep &&
         task_keeps_completed(value_of(row, kJobIdentifier), completion->jobs.table.snapshot);
}

// Whether a job of the same flow waits for this job, to get the result at its start. Retention
// passes over the record until then.
bool is_kept_for_child(TupleTableSlot* row, const NullableDatum& result) {
  return !result.isnull && has_field(row, kJobKeepsResult);
}

void record(Completion* completion, TupleTableSlot* row, const NullableDatum& result) {
  bool has_lost_key = forget_superseded(row);
  bool keeps = is_kept(completion, row);
  if (!keeps && !is_kept_for_child(row, result)) return;
  record_finished_job(&completion->records, row,
                      {catalog()->finished_completed, 0, kNull, result, kNull, has_lost_key});
  if (keeps) record_attempt(&completion->records, row, CStringGetTextDatum("completed"), kNull);
}

void note_in_place_end(Completion* completion, TupleTableSlot* row, const NamedClaim& claim) {
  if (!catalog()->has_index_lanes || !DatumGetBool(value_of(row, kJobInPlace))) return;
  int64 worker_id = DatumGetInt64(value_of(row, kJobWorkerId));
  completion->in_place[completion->in_place_count++] = {worker_id, claim.token, claim.job_id};
}

// Deletes the row that find_attempt() found.
TM_Result delete_row(RunningJobs* jobs, bool waits) {
  JobTable* table = &jobs->table;
  TupleTableSlot* row = jobs->ids.row;
  TM_Result result = try_delete_row(table, row, waits);
  // TM_BeingModified may mean that only this transaction has locked the row. Then it can lock the
  // row again.
  if (result == TM_BeingModified &&
      lock_row(table, row->tts_tid, LockWaitSkip, LockTupleExclusive) == TM_Ok)
    result = try_delete_row(table, row, true);
  return result;
}

// Completes the attempt that find_attempt() found. Returns kLocked after ending the attempt.
AttemptLock complete_found(Completion* completion, const NamedClaim& claim,
                           const NullableDatum& result, Patience patience) {
  TupleTableSlot* row = completion->jobs.ids.row;
  bool no_queue = slot_attisnull(row, kJobQueueName);
  QueuePlace place = {};
  if (!no_queue) place = place_in_queue(DatumGetTextPP(value_of(row, kJobQueueName)));
  TM_Result deleted = delete_row(&completion->jobs, patience == Patience::kWaits);
  if (deleted == TM_BeingModified) return AttemptLock::kBusy;
  if (deleted != TM_Ok) return AttemptLock::kNotRunning;
  record(completion, row, result);
  note_in_place_end(completion, row, claim);
  note_ended_job(claim.job_id);
  note_attempt_end(row, kCompleted, completion->records.now);
  if (!no_queue) note_place_freed(place);
  return AttemptLock::kLocked;
}

AttemptLock complete_job(Completion* completion, const NamedClaim& claim,
                         const NullableDatum& result, Patience patience) {
  for (;;) {
    if (!find_attempt(&completion->jobs, claim.job_id, {Int64GetDatum(claim.token), false}))
      return AttemptLock::kNotRunning;
    AttemptLock lock = complete_found(completion, claim, result, patience);
    if (lock != AttemptLock::kNotRunning) return lock;
    // A heartbeat or a progress report may have changed the row since the snapshot.
    renew_snapshot(&completion->jobs);
  }
}

// A job that a single call completes stays in its batch until the next heartbeat of the worker,
// because each removal rewrites the batch.
void complete_all(ClaimList* list, const ArgumentArray& results, Patience patience) {
  bool is_single = patience == Patience::kWaits;
  Completion completion;
  open_running_jobs(&completion.jobs, is_single && IsolationUsesXactSnapshot());
  open_attempt_records(&completion.records);
  completion.may_keep = some_task_keeps_completed(completion.jobs.table.snapshot);
  completion.in_place = static_cast<InPlaceEnd*>(palloc(sizeof(InPlaceEnd) * Max(list->count, 1)));
  completion.in_place_count = 0;
  end_each(list, &completion.jobs, [&](const NamedClaim& claim) {
    return complete_job(&completion, claim, results.at(claim.position), patience);
  });
  close_attempt_records(&completion.records);
  close_running_jobs(&completion.jobs);
  if (!is_single) remove_from_batches(completion.in_place, completion.in_place_count);
}

// Completes one job. False when the job runs no attempt with this token.
bool complete_one(const NullableDatum& job_id, const NullableDatum& token, NullableDatum result) {
  if (job_id.isnull || token.isnull) return false;
  NamedClaim claim = {DatumGetInt64(job_id.value), DatumGetInt64(token.value), 0, "completed",
                      AttemptLock::kNotRunning};
  ClaimList list = {&claim, 1};
  complete_all(&list, {true, 1, &result.value, &result.isnull}, Patience::kWaits);
  CommandCounterIncrement();
  return claim.lock == AttemptLock::kLocked;
}

void complete_many(FunctionCallInfo fcinfo) {
  ArgumentArray arrays[kArguments];
  read_claim_arrays(fcinfo, arrays, kArguments, kResults);
  for (int i = 0; i < arrays[kResults].count; i++)
    if (!arrays[kResults].nulls[i]) check_document("result", arrays[kResults].values[i]);
  begin_result_rows(fcinfo);
  ClaimList list = read_claims(arrays[kIds], arrays[kTokens], "completed");
  complete_all(&list, arrays[kResults], Patience::kNeverWaits);
  answer_claims(list, arrays[kIds], fcinfo);
}

}  // namespace
}  // namespace pulse

// pulse.complete(job_id, token, result).
PULSE_FUNCTION(pulse_complete) {
  pulse::prepare_to_end("complete");
  const NullableDatum* given = fcinfo->args;
  if (!PG_ARGISNULL(pulse::kResults)) pulse::check_document("result", given[pulse::kResults].value);
  if (!pulse::complete_one(given[pulse::kIds], given[pulse::kTokens], given[pulse::kResults]))
    pulse::require_repeat(given[pulse::kIds], given[pulse::kTokens], "completed");
  PG_RETURN_VOID();
}

// pulse.complete_many(job_ids, tokens, results).
PULSE_FUNCTION(pulse_complete_many) {
  pulse::prepare_to_end("complete_many");
  pulse::complete_many(fcinfo);
  return static_cast<Datum>(0);
}
