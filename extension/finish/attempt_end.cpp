#include "finish/attempt_end.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/saved_plan.hpp"
#include "access/table_locks.hpp"
#include "counters/noted_attempts.hpp"
#include "job/key_lock.hpp"
#include "job/task_settings.hpp"
#include "queue/places.hpp"
#include "server/call_checks.hpp"
#include "server/values.hpp"
#include "wake/end_waiters.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// The cause of attempts that requeue_job and force_unlock_workers end.
constexpr char kOperatorCause[] = "hand";

// The job's fate after an attempt.
struct Decision {
  KeyStanding key;
  Oid state;  // of type pulse.job_state or pulse.finished_state
  int attempts;
  int crashes;
  TimestampTz run_at;
  bool adds_letter;  // the end is a death of a task with dead letters
};

bool is_set(TupleTableSlot* row, JobColumn column) { return !slot_attisnull(row, column); }

bool waits_again(const Decision& decision) {
  return decision.state == catalog()->state_ready || decision.state == catalog()->state_parked;
}

// --- the decision -------------------------------------------------------------------------------

int crashes_after(TupleTableSlot* row, const Ending& ending) {
  return Min(int2_of(row, kJobCrashes) + (ending.kind == Ending::kLost), PG_INT16_MAX);
}

bool is_one_crash_too_many(AttemptEnds* ends, TupleTableSlot* row) {
  TaskSettings task = task_settings(value_of(row, kJobIdentifier), ends->jobs.table.snapshot);
  return is_poison(int2_of(row, kJobCrashes) + 1, task.max_crashes);
}

// A job that ends its program while it runs alone has shown who crashed the program before.
Ending ending_of_suspect(AttemptEnds* ends, TupleTableSlot* row, const Ending& stated) {
  Ending ending = stated;
  if (!stated.is_lost_if_suspect) return ending;
  if (int2_of(row, kJobCrashes) == 0 && !is_one_crash_too_many(ends, row)) return ending;
  ending.kind = Ending::kLost;
  ending.outcome = CStringGetTextDatum("lost");
  ending.cause = {CStringGetTextDatum("crash"), false};
  return ending;
}

bool gives_attempt_back(const Ending& ending) {
  return ending.kind == Ending::kReleased || ending.kind == Ending::kSnoozed;
}

bool may_run_again(TupleTableSlot* row, const Ending& ending) {
  if (gives_attempt_back(ending)) return true;
  return ending.may_retry && int2_of(row, kJobAttempts) < int2_of(row, kJobMaxAttempts);
}

// The next state of the job. Locks the key of a job that waits again under this key.
Oid next_state_of(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending, KeyStanding* key) {
  const Catalog* known = catalog();
  if (is_set(row, kJobCancelRequestedAt)) return known->finished_cancelled;
  if (ending.kind == Ending::kLost && is_one_crash_too_many(ends, row))
    return known->finished_quarantined;
  if (!may_run_again(row, ending)) return known->finished_failed;
  *key = try_lock_key_of(row);
  if (*key == KeyStanding::kTaken) return known->finished_failed;
  bool is_parked = is_set(row, kJobQueueName) || *key == KeyStanding::kUndecided;
  return is_parked ? known->state_parked : known->state_ready;
}

// The moment after the backoff of the job's task.
TimestampTz after_backoff(TimestampTz moment, TupleTableSlot* row) {
#define PULSE_BACKOFF_BY(function)                                                  \
  {                                                                                 \
    "SELECT $1 OPERATOR(pg_catalog.+) " function                                    \
    "(t, $3) FROM (SELECT $2) AS given (task)"                                      \
    " LEFT JOIN pulse.task AS t ON t.identifier OPERATOR(pg_catalog.=) given.task", \
        3, {TIMESTAMPTZOID, TEXTOID, INT4OID}, nullptr                              \
  }
  static SavedPlan query = PULSE_BACKOFF_BY("pulse_internal.backoff");
  static SavedPlan query_in_0_1_0 = PULSE_BACKOFF_BY("pulse._backoff");
#undef PULSE_BACKOFF_BY
  NullableDatum arguments[] = {{TimestampTzGetDatum(moment), false},
                               {value_of(row, kJobIdentifier), false},
                               {Int32GetDatum(int2_of(row, kJobAttempts)), false}};
  return DatumGetTimestampTz(
      value_of_query(catalog()->has_index_lanes ? &query : &query_in_0_1_0, arguments).value);
}

TimestampTz later_by(TimestampTz moment, Datum interval) {
  return DatumGetTimestampTz(
      DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(moment), interval));
}

TimestampTz next_run_at(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending) {
  TimestampTz now = ends->records.now;
  TimestampTz run_at = DatumGetTimestampTz(value_of(row, kJobRunAt));
  if (ending.kind == Ending::kReleased) return run_at;
  if (ending.kind == Ending::kSnoozed) return later_by(now, ending.retry_in.value);
  run_at = Max(run_at, now);
  if (ending.kind == Ending::kInterrupted) return run_at;
  if (!ending.retry_in.isnull) return later_by(run_at, ending.retry_in.value);
  return after_backoff(run_at, row);
}

// Whether the job ends failed or quarantined by itself, and its task has dead letters. An
// operator's end counts as little as the end of a job whose key a newer job has taken.
bool adds_dead_letter(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending,
                      const Decision& decision) {
  if (decision.state == catalog()->finished_cancelled) return false;
  if (decision.key == KeyStanding::kTaken) return false;
  if (!ending.cause.isnull && text_is(ending.cause.value, kOperatorCause)) return false;
  return task_has_dead_letter(value_of(row, kJobIdentifier), ends->jobs.table.snapshot);
}

Decision decide(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending) {
  Decision decision = {};
  decision.state = next_state_of(ends, row, ending, &decision.key);
  decision.crashes = crashes_after(row, ending);
  if (!waits_again(decision)) {
    decision.adds_letter = adds_dead_letter(ends, row, ending, decision);
    return decision;
  }
  decision.attempts = int2_of(row, kJobAttempts) - gives_attempt_back(ending);
  decision.run_at = next_run_at(ends, row, ending);
  return decision;
}

// --- the writes ---------------------------------------------------------------------------------

void set_unless_null(JobChange* change, JobColumn column, const NullableDatum& value) {
  if (!value.isnull) change->set(column, value.value);
}

// Takes the row as stored, because a trigger may have changed it. A moment later than the stored
// run_at would leave the job below the low-water mark of its task.
void wake_for_requeued(TupleTableSlot* row) {
  text* queue_name =
      is_set(row, kJobQueueName) ? DatumGetTextPP(value_of(row, kJobQueueName)) : nullptr;
  note_job(DatumGetTextPP(value_of(row, kJobIdentifier)), queue_name,
           DatumGetTimestampTz(value_of(row, kJobRunAt)), int2_of(row, kJobPriority));
  if (queue_name) note_place_freed(place_in_queue(queue_name));
}

// The only function that makes a running job wait again.
void requeue(AttemptEnds* ends, const Ending& ending, const Decision& decision) {
  static const JobColumn claim_columns[] = {kJobWorkerId, kJobToken, kJobClaimedAt, kJobClaimedLive,
                                            kJobActivityLive};
  JobChange change = {};
  if (decision.key == KeyStanding::kUndecided)
    change.set_undecided();
  else
    change.set_waiting(decision.state);
  change.set(kJobAttempts, Int16GetDatum(decision.attempts));
  change.set(kJobCrashes, Int16GetDatum(decision.crashes));
  change.set(kJobRunAt, TimestampTzGetDatum(decision.run_at));
  set_unless_null(&change, kJobPayload, ending.payload);
  set_unless_null(&change, kJobCheckpoint, ending.checkpoint);
  if (ending.kind != Ending::kSnoozed) set_unless_null(&change, kJobLastError, ending.error);
  // The next claim still reports the cause of the last recovery if this attempt did not count.
  if (!gives_attempt_back(ending)) change.clear(kJobRecovered);
  set_unless_null(&change, kJobRecovered, ending.cause);
  for (JobColumn column : claim_columns) change.clear(column);
  if (is_set(ends->jobs.table.locked, kJobQueueName) && catalog()->has_index_lanes)
    change.set(kJobSuccession, Int16GetDatum(kClaimedSuccession));
  change.set(kJobUpdatedAt, TimestampTzGetDatum(ends->records.now));
  update_locked_row(&ends->jobs.table, &change);
  if (decision.key == KeyStanding::kFree) unlock_key_of(ends->jobs.table.locked);
  wake_for_requeued(ends->jobs.table.changed);
}

bool may_pause_queue(TupleTableSlot* row, const Decision& decision) {
  return decision.state != catalog()->finished_cancelled && catalog()->has_index_lanes &&
         is_set(row, kJobQueueName);
}

// Locks the tables that the job's end needs to pause the queue, without waiting. False: a table is
// locked by another transaction.
bool try_lock_pauses(TupleTableSlot* row, const Decision& decision) {
  static SavedPlan query = {"SELECT pulse_internal.pauses_on_death($1)", 1, {TEXTOID}, nullptr};
  if (!may_pause_queue(row, decision)) return true;
  if (!try_lock_table(catalog()->queue, AccessShareLock)) return false;
  NullableDatum queue_name = field_of(row, kJobQueueName);
  return !DatumGetBool(value_of_query(&query, &queue_name).value) ||
         try_lock_table(catalog()->queue_pause, RowExclusiveLock);
}

// Pauses a strict queue whose job dies, if the queue's settings ask for the pause:
// sql/queue/strict.sql.
void note_death(TupleTableSlot* row, int64 job_id, const Decision& decision) {
  static SavedPlan query = {
      "SELECT pulse_internal.note_death($1, $2)", 2, {TEXTOID, INT8OID}, nullptr};
  if (!may_pause_queue(row, decision)) return;
  NullableDatum arguments[] = {field_of(row, kJobQueueName), {Int64GetDatum(job_id), false}};
  (void)value_of_query(&query, arguments);
}

// Locks the tables that the dead letter needs, without waiting. False: a table is locked by another
// transaction.
bool try_lock_letters(const Decision& decision) {
  static SavedPlan query = {"SELECT pulse_internal.try_lock_ids()", 0, {}, nullptr};
  return !decision.adds_letter || DatumGetBool(value_of_query(&query, nullptr).value);
}

// Adds the dead letter of a job that is on record: sql/job/dead_letter.sql.
void add_letter(int64 job_id, const Decision& decision) {
  static SavedPlan query = {"SELECT pulse_internal.add_dead_letter($1)", 1, {INT8OID}, nullptr};
  NullableDatum argument = {Int64GetDatum(job_id), false};
  if (decision.adds_letter) (void)value_of_query(&query, &argument);
}

void archive(AttemptEnds* ends, TupleTableSlot* row, const Ending& ending,
             const Decision& decision) {
  bool is_for_reason =
      decision.state == catalog()->finished_cancelled && is_set(row, kJobCancelReason);
  NullableDatum error = is_for_reason ? field_of(row, kJobCancelReason) : ending.error;
  bool has_lost_key = forget_superseded(row);
  record_finished_job(
      &ends->records, row,
      {decision.state, decision.crashes, ending.payload, kNull, error, has_lost_key});
  if (is_set(row, kJobQueueName))
    note_place_freed(place_in_queue(DatumGetTextPP(value_of(row, kJobQueueName))));
  note_death(row, ending.job_id, decision);
  add_letter(ending.job_id, decision);
  note_ended_job(ending.job_id);
  if (try_delete_row(&ends->jobs.table, row, true) != TM_Ok)
    elog(ERROR, "could not delete a job that was locked");
}

// Locks the row for deletion. False when a transaction in progress refers to the row by a foreign
// key of another table. False also when another transaction has locked a table that the end needs
// to pause the queue or to add a dead letter.
bool lock_to_delete(JobTable* table, const Decision& decision, Patience patience) {
  bool waits = patience == Patience::kWaits;
  if (!waits && !(try_lock_pauses(table->locked, decision) && try_lock_letters(decision)))
    return false;
  LockWaitPolicy policy = waits ? LockWaitBlock : LockWaitSkip;
  return table->is_plain ||
         lock_row(table, table->locked->tts_tid, policy, LockTupleExclusive) == TM_Ok;
}

AttemptEvent event_of(const Ending& ending, const Decision& decision) {
  if (waits_again(decision)) return gives_attempt_back(ending) ? kReturned : kRetried;
  if (decision.state == catalog()->finished_cancelled) return kCancelled;
  return decision.state == catalog()->finished_quarantined ? kQuarantined : kFailed;
}

void write(AttemptEnds* ends, const Ending& ending, const Decision& decision) {
  TupleTableSlot* row = ends->jobs.table.locked;
  note_attempt_end(row, event_of(ending, decision), ends->records.now);
  // A snoozed job continues the same attempt later, so no attempt is recorded.
  if (ending.kind != Ending::kSnoozed || !waits_again(decision))
    record_attempt(&ends->records, row,
                   decision.state == catalog()->finished_cancelled
                       ? CStringGetTextDatum("cancelled")
                       : ending.outcome,
                   ending.error);
  if (waits_again(decision))
    requeue(ends, ending, decision);
  else
    archive(ends, row, ending, decision);
}

}  // namespace

Ending::Kind kind_of_ending(Datum outcome) {
  if (text_is(outcome, "lost")) return Ending::kLost;
  if (text_is(outcome, "released")) return Ending::kReleased;
  return text_is(outcome, "interrupted") ? Ending::kInterrupted : Ending::kOther;
}

void open_attempt_ends(AttemptEnds* ends) {
  open_running_jobs(&ends->jobs);
  open_attempt_records(&ends->records);
}

void close_attempt_ends(AttemptEnds* ends) {
  close_attempt_records(&ends->records);
  close_running_jobs(&ends->jobs);
  CommandCounterIncrement();
}

EndedAttempt end_attempt(AttemptEnds* ends, const Ending& stated, const NullableDatum& token,
                         Patience patience) {
  AttemptLock lock = lock_attempt(&ends->jobs, stated.job_id, token, patience);
  if (lock != AttemptLock::kLocked) return {lock, nullptr};
  Ending ending = ending_of_suspect(ends, ends->jobs.table.locked, stated);
  if (!ending.error.isnull) ending.error.value = readable(ending.error.value);
  Decision decision = decide(ends, ends->jobs.table.locked, ending);
  if (!waits_again(decision) && !lock_to_delete(&ends->jobs.table, decision, patience))
    return {AttemptLock::kBusy, nullptr};
  write(ends, ending, decision);
  return {AttemptLock::kLocked,
          DatumGetCString(DirectFunctionCall1(enum_out, ObjectIdGetDatum(decision.state)))};
}

}  // namespace pulse
