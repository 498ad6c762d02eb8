#include "finish/attempt_end.hpp"

#include "access/catalog.hpp"
#include "claim/claim.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// Columns of pulse.attempt.
enum AttemptColumn {
  kAttemptJobId,
  kAttemptToken,
  kAttemptNumber,
  kAttemptWorkerId,
  kAttemptClaimedAt,
  kAttemptEndedAt,
  kAttemptOutcome,
  kAttemptError,
  kAttemptColumns,
};

// Of pulse.finished_job those that are not what they were in pulse.job.
enum FinishedColumn {
  kFinishedPayload = 2,
  kFinishedState = 6,
  kFinishedCrashes = 9,
  kFinishedResult = 16,
  kFinishedLastError = 17,
  kFinishedAt = 20,
  kFinishedColumns = 21,
};

enum class NextState { kRetry, kFailed, kQuarantined, kInDoubt };

bool is_set(TupleTableSlot* row, JobColumn column) { return !slot_attisnull(row, column); }

Datum value_of(TupleTableSlot* row, JobColumn column) {
  bool isnull;
  return slot_getattr(row, column, &isnull);
}

// --- fates, as sql/attempt.sql has them ---------------------------------------------------------

bool is_running(TupleTableSlot* row, AttemptOf of) {
  if (DatumGetObjectId(value_of(row, kJobState)) != catalog()->state_running) return false;
  bool isnull = false;
  return of.column == 0 ||
         (DatumGetInt64(slot_getattr(row, of.column, &isnull)) == of.number && !isnull);
}

void find_rule(AttemptEnds* ends, Datum identifier) {
  text* name = DatumGetTextPP(identifier);
  text* last = ends->rule_is_of;
  if (last && VARSIZE_ANY_EXHDR(last) == VARSIZE_ANY_EXHDR(name) &&
      memcmp(VARDATA_ANY(last), VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name)) == 0)
    return;
  ends->rule = retry_rule(identifier, ends->jobs.snapshot);
  ends->rule_is_of = DatumGetTextPCopy(identifier);
}

bool is_one_crash_too_many(const RetryRule& rule, TupleTableSlot* row) {
  return rule.max_crashes >= 0 && int2_of(row, kJobCrashes) + 1 >= rule.max_crashes;
}

NextState next_state_of(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending) {
  if (is_set(row, kJobCancelRequestedAt) || is_set(row, kJobKey) ||
      DatumGetBool(value_of(row, kJobSuperseded)))
    return NextState::kInDoubt;
  find_rule(ends, value_of(row, kJobIdentifier));
  if (ending.kind == Ending::kLost && is_one_crash_too_many(ends->rule, row))
    return NextState::kQuarantined;
  if (ending.kind == Ending::kReleased) return NextState::kRetry;
  bool has_more = int2_of(row, kJobAttempts) < int2_of(row, kJobMaxAttempts);
  return ending.may_retry && has_more ? NextState::kRetry : NextState::kFailed;
}

TimestampTz next_run_at(const AttemptEnds* ends, TupleTableSlot* row, const Ending& ending) {
  TimestampTz run_at = DatumGetTimestampTz(value_of(row, kJobRunAt));
  if (ending.kind == Ending::kReleased) return run_at;
  run_at = Max(run_at, ends->now);
  if (ending.kind == Ending::kInterrupted) return run_at;
  if (!ending.retry_in.isnull)
    return DatumGetTimestampTz(DirectFunctionCall2(
        timestamptz_pl_interval, TimestampTzGetDatum(run_at), ending.retry_in.value));
  return run_at + backoff_us(ends->rule, int2_of(row, kJobAttempts));
}

int crashes_after(TupleTableSlot* row, const Ending& ending) {
  return Min(int2_of(row, kJobCrashes) + (ending.kind == Ending::kLost), PG_INT16_MAX);
}

// --- what is written ----------------------------------------------------------------------------

void write_attempt(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending) {
  static const JobColumn from[] = {kJobId, kJobToken, kJobAttempts, kJobWorkerId, kJobClaimedAt};
  Datum values[kAttemptColumns];
  bool nulls[kAttemptColumns] = {};
  for (int i = 0; i < static_cast<int>(lengthof(from)); i++)
    values[i] = slot_getattr(row, from[i], &nulls[i]);
  values[kAttemptEndedAt] = TimestampTzGetDatum(ends->now);
  values[kAttemptOutcome] = ending.outcome;
  values[kAttemptError] = ending.error.value;
  nulls[kAttemptError] = ending.error.isnull;
  insert_row(&ends->attempts, values, nulls, kAttemptColumns);
}

void set_unless_null(JobChange* change, JobColumn column, const NullableDatum& value) {
  if (!value.isnull) change->set(column, value.value);
}

const char* requeue(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending) {
  static const JobColumn of_the_claim[] = {kJobWorkerId, kJobToken, kJobClaimedAt, kJobClaimedLive,
                                           kJobActivityLive};
  bool has_queue = is_set(row, kJobQueueName);
  TimestampTz run_at = next_run_at(ends, row, ending);
  note_job(DatumGetTextPP(value_of(row, kJobIdentifier)),
           has_queue ? DatumGetTextPP(value_of(row, kJobQueueName)) : nullptr, run_at);
  JobChange change = {};
  change.set_waiting(has_queue ? catalog()->state_parked : catalog()->state_ready);
  int given_back = ending.kind == Ending::kReleased;
  change.set(kJobAttempts, Int16GetDatum(int2_of(row, kJobAttempts) - given_back));
  change.set(kJobCrashes, Int16GetDatum(crashes_after(row, ending)));
  change.set(kJobRunAt, TimestampTzGetDatum(run_at));
  set_unless_null(&change, kJobPayload, ending.payload);
  set_unless_null(&change, kJobLastError, ending.error);
  if (!ending.keeps_cause) {
    change.clear(kJobRecovered);
    set_unless_null(&change, kJobRecovered, ending.cause);
  }
  for (JobColumn column : of_the_claim) change.clear(column);
  change.set(kJobUpdatedAt, TimestampTzGetDatum(ends->now));
  update_locked_row(&ends->jobs, &change);
  return has_queue ? "parked" : "ready";
}

const char* archive(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending,
                    NextState next_state) {
  static const JobColumn from[kFinishedColumns] = {
      kJobId,       kJobIdentifier, kJobPayload,     kJobQueueName,  kJobPriority,   kJobRunAt,
      kJobState,    kJobAttempts,   kJobMaxAttempts, kJobCrashes,    kJobKey,        kJobFlags,
      kJobWorkerId, kJobToken,      kJobClaimedAt,   kJobCheckpoint, kJobCheckpoint, kJobLastError,
      kJobRevision, kJobCreatedAt,  kJobUpdatedAt};
  bool is_failed = next_state == NextState::kFailed;
  Datum values[kFinishedColumns];
  bool nulls[kFinishedColumns];
  for (int i = 0; i < kFinishedColumns; i++) values[i] = slot_getattr(row, from[i], &nulls[i]);
  auto put = [&](FinishedColumn column, const NullableDatum& value) {
    if (value.isnull) return;
    values[column] = value.value;
    nulls[column] = false;
  };
  put(kFinishedPayload, ending.payload);
  put(kFinishedLastError, ending.error);
  values[kFinishedState] =
      ObjectIdGetDatum(is_failed ? catalog()->finished_failed : catalog()->finished_quarantined);
  values[kFinishedCrashes] = Int16GetDatum(crashes_after(row, ending));
  nulls[kFinishedResult] = true;
  values[kFinishedAt] = TimestampTzGetDatum(ends->now);
  insert_row(&ends->finished, values, nulls, kFinishedColumns);
  if (is_set(row, kJobQueueName))
    note_queue_slot(queue_slot(DatumGetTextPP(value_of(row, kJobQueueName))));
  if (try_delete_row(&ends->jobs, row, true) != TM_Ok)
    elog(ERROR, "could not delete a job that was locked");
  return is_failed ? "failed" : "quarantined";
}

bool is_plain(const JobTable& table, int columns) {
  return !table.relation->trigdesc && RelationGetNumberOfAttributes(table.relation) == columns;
}

}  // namespace

void open_attempt_ends(AttemptEnds* ends) {
  ends->now = wall_now();
  ends->rule_is_of = nullptr;
  open_job_table(&ends->jobs);
  open_extension_table(&ends->attempts, catalog()->attempt);
  open_extension_table(&ends->finished, catalog()->finished_job);
  open_index_lookup(&ends->ids, ends->jobs.relation, catalog()->job_key, ends->jobs.snapshot);
  // A transaction with one snapshot must not see what came after it.
  ends->by_sql = !ends->jobs.is_plain || !is_plain(ends->attempts, kAttemptColumns) ||
                 !is_plain(ends->finished, kFinishedColumns) || IsolationUsesXactSnapshot();
}

void close_attempt_ends(AttemptEnds* ends) {
  close_index_lookup(&ends->ids);
  close_job_table(&ends->jobs);
  close_job_table(&ends->finished);
  close_job_table(&ends->attempts);
  CommandCounterIncrement();
}

const char* end_attempt(AttemptEnds* ends, const Ending& ending, AttemptOf of) {
  TupleTableSlot* row = ends->ids.row;
  if (ends->by_sql || !find_id(&ends->ids, ending.job_id) || !is_running(row, of)) return nullptr;
  NextState next_state = next_state_of(ends, row, ending);
  // Not before: with a key, its lock comes first.
  if (next_state == NextState::kInDoubt || !try_lock_row(&ends->jobs, row->tts_tid)) return nullptr;
  row = ends->jobs.locked;
  write_attempt(ends, row, ending);
  return next_state == NextState::kRetry ? requeue(ends, row, ending)
                                         : archive(ends, row, ending, next_state);
}

}  // namespace pulse
