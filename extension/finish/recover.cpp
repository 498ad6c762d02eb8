// pulse._recover_owner() ends the attempts of a worker that is lost or stopped; see sql/lost.sql.
// pulse._end_attempts() ends attempts for SQL functions; see sql/attempt.sql.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "claim/claiming_worker.hpp"
#include "claim/in_place_claim.hpp"
#include "finish/attempt_end.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

Ending::Kind kind_of(Datum outcome) {
  if (text_is(outcome, "lost")) return Ending::kLost;
  if (text_is(outcome, "released")) return Ending::kReleased;
  return text_is(outcome, "interrupted") ? Ending::kInterrupted : Ending::kOther;
}

// --- the jobs of a worker -----------------------------------------------------------------------

enum Argument { kWorkerId, kOutcome, kCause, kReason, kMaxJobs };

struct Recovery {
  AttemptEnds ends;
  Ending ending;
  int64 worker_id;
  int max_jobs;
  int ended;
  ReturnSetInfo* results;
};

Recovery read_recovery(FunctionCallInfo fcinfo) {
  Recovery recovery = {};
  Datum outcome = PG_GETARG_DATUM(kOutcome);
  recovery.ending = new_ending(outcome, kind_of(outcome));
  recovery.ending.cause = fcinfo->args[kCause];
  recovery.ending.error = fcinfo->args[kReason];
  recovery.worker_id = PG_GETARG_INT64(kWorkerId);
  recovery.max_jobs = PG_ARGISNULL(kMaxJobs) ? PG_INT32_MAX : PG_GETARG_INT32(kMaxJobs);
  recovery.results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  return recovery;
}

void recover(Recovery* recovery, RunningIds ids) {
  AttemptEnds* ends = &recovery->ends;
  qsort(ids.elements, ids.count, sizeof(int64), compare_ids);
  if (ids.count > 0)
    expect_ids(&ends->jobs.ids, ids.elements[0], ids.elements[ids.count - 1], ids.count);
  for (int i = 0; i < ids.count && recovery->ended < recovery->max_jobs; i++) {
    CHECK_FOR_INTERRUPTS();
    recovery->ending.job_id = ids.elements[i];
    const char* state =
        end_attempt(ends, recovery->ending, {kJobWorkerId, recovery->worker_id}).state;
    if (!state) continue;
    recovery->ended++;
    Datum values[] = {Int64GetDatum(ids.elements[i]), CStringGetTextDatum(state)};
    bool nulls[] = {false, false};
    tuplestore_putvalues(recovery->results->setResult, recovery->results->setDesc, values, nulls);
  }
}

void recover_owner(Recovery* recovery) {
  RunningJobs* jobs = &recovery->ends.jobs;
  open_attempt_ends(&recovery->ends);
  auto ids_of_worker = [&](int max_count) {
    return running_ids(&recovery->worker_id, max_count, jobs->table.relation, jobs->table.snapshot);
  };
  RunningIds ids = ids_of_worker(recovery->max_jobs);
  bool are_all = ids.count < recovery->max_jobs;
  recover(recovery, ids);
  // If other transactions have locked some of these jobs, the rest of the worker's jobs come next.
  if (!are_all && recovery->ended < recovery->max_jobs) {
    renew_snapshot(jobs);
    recover(recovery, ids_of_worker(PG_INT32_MAX));
  }
  close_attempt_ends(&recovery->ends);
}

// --- endings ------------------------------------------------------------------------------------

// The attributes of type pulse._ending.
enum EndingColumn {
  kEndingJobId,
  kEndingOutcome,
  kEndingError,
  kEndingRetry,
  kEndingRetryIn,
  kEndingPayload,
  kEndingCause,
  kEndingToken,
  kEndingColumns,
};

// Reads one element of the array, and sets the attempt that it ends.
Ending read_ending(Datum element, AttemptOf* of) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(element);
  TupleDesc shape = shape_of(header);
  if (shape->natts != kEndingColumns)
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("type pulse._ending has %d attributes, not %d", shape->natts,
                    static_cast<int>(kEndingColumns)),
             errhint("Run ALTER EXTENSION pg_pulse UPDATE, or undo the change of the type.")));
  Datum values[kEndingColumns];
  bool nulls[kEndingColumns];
  read_fields(header, shape, values, nulls);
  ReleaseTupleDesc(shape);
  auto field = [&](EndingColumn column) -> NullableDatum {
    return {values[column], nulls[column]};
  };
  Ending ending = new_ending(values[kEndingOutcome], kind_of(values[kEndingOutcome]));
  ending.job_id = DatumGetInt64(values[kEndingJobId]);
  ending.may_retry = nulls[kEndingRetry] || DatumGetBool(values[kEndingRetry]);
  ending.error = field(kEndingError);
  ending.retry_in = field(kEndingRetryIn);
  ending.payload = field(kEndingPayload);
  ending.cause = field(kEndingCause);
  *of = nulls[kEndingToken] ? AttemptOf{0, 0}
                            : AttemptOf{kJobToken, DatumGetInt64(values[kEndingToken])};
  return ending;
}

void end_attempts(ReturnSetInfo* results, ArrayType* endings) {
  Datum* elements;
  bool* nulls;
  int count;
  deconstruct_array(endings, ARR_ELEMTYPE(endings), -1, false, TYPALIGN_DOUBLE, &elements, &nulls,
                    &count);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  for (int i = 0; i < count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (nulls[i]) continue;
    AttemptOf of;
    Ending ending = read_ending(elements[i], &of);
    const char* state = end_attempt(&ends, ending, of).state;
    if (!state) continue;
    Datum values[] = {Int64GetDatum(ending.job_id), CStringGetTextDatum(state), ending.outcome};
    bool no_nulls[] = {false, false, false};
    tuplestore_putvalues(results->setResult, results->setDesc, values, no_nulls);
  }
  close_attempt_ends(&ends);
}

}  // namespace
}  // namespace pulse

// pulse._recover_owner(worker_id, outcome, cause, reason, max_jobs)
PULSE_FUNCTION(pulse_recover_owner) {
  pulse::begin_result_rows(fcinfo);
  pulse::Recovery recovery = pulse::read_recovery(fcinfo);
  pulse::recover_owner(&recovery);
  return static_cast<Datum>(0);
}

// pulse._end_attempts(endings)
PULSE_FUNCTION(pulse_end_attempts) {
  pulse::begin_result_rows(fcinfo);
  if (!PG_ARGISNULL(0))
    pulse::end_attempts(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo),
                        PG_GETARG_ARRAYTYPE_P(0));
  return static_cast<Datum>(0);
}
