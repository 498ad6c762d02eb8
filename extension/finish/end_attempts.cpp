// pulse_internal.end_attempts() ends attempts for SQL functions; see sql/worker/attempt.sql.
#include "server/postgres.hpp"

#include "finish/attempt_end.hpp"
#include "finish/claim_list.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// The attributes of type pulse_internal.ending.
enum EndingColumn {
  kEndingJobId = 1,
  kEndingOutcome,
  kEndingError,
  kEndingRetry,
  kEndingRetryIn,
  kEndingPayload,
  kEndingCause,
  kEndingColumns = kEndingCause,
};

Ending read_ending(Datum element) {
  HeapTupleHeader header = header_of(element);
  TupleDesc shape = shape_of_type(header, "pulse_internal.ending", kEndingColumns);
  RowValue given;
  read_fields(header, shape, given.values, given.nulls);
  ReleaseTupleDesc(shape);
  if (!given.has(kEndingJobId) || !given.has(kEndingOutcome))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("an ending needs a job and an outcome")));
  Datum outcome = given.value(kEndingOutcome);
  Ending ending = {kind_of_ending(outcome), outcome};
  ending.job_id = DatumGetInt64(given.value(kEndingJobId));
  ending.may_retry = !given.has(kEndingRetry) || DatumGetBool(given.value(kEndingRetry));
  ending.error = given.field(kEndingError);
  ending.retry_in = given.field(kEndingRetryIn);
  ending.payload = given.field(kEndingPayload);
  ending.cause = given.field(kEndingCause);
  return ending;
}

// Ends at most `max_count` of the attempts. Without a token, the ending is for the attempt that
// runs.
void end_attempts(ReturnSetInfo* results, const ArgumentArray& endings, const ArgumentArray& tokens,
                  int max_count) {
  AttemptEnds ends;
  open_attempt_ends(&ends);
  int ended = 0;
  for (int i = 0; i < endings.count && ended < max_count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (endings.nulls[i]) continue;
    Ending ending = read_ending(endings.values[i]);
    const char* state = end_attempt(&ends, ending, tokens.at(i)).state;
    if (!state) continue;
    ended++;
    Datum values[] = {Int64GetDatum(ending.job_id), CStringGetTextDatum(state), ending.outcome};
    bool no_nulls[] = {false, false, false};
    tuplestore_putvalues(results->setResult, results->setDesc, values, no_nulls);
  }
  close_attempt_ends(&ends);
}

}  // namespace
}  // namespace pulse

// pulse_internal.end_attempts(endings, tokens, max_count); the function of 0.1.0 has only the
// endings.
PULSE_FUNCTION(pulse_end_attempts) {
  pulse::begin_result_rows(fcinfo);
  pulse::ArgumentArray arrays[2] = {};
  pulse::read_arrays(fcinfo, arrays, Min(PG_NARGS(), 2), 1);
  pulse::end_attempts(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), arrays[0], arrays[1],
                      PG_NARGS() < 3 || PG_ARGISNULL(2) ? PG_INT32_MAX : PG_GETARG_INT32(2));
  return static_cast<Datum>(0);
}
