// pulse._end_attempts() ends attempts for SQL functions; see sql/attempt.sql.
#include "server/postgres.hpp"

#include "access/columns.hpp"
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

// The attributes of type pulse._ending.
enum EndingColumn {
  kEndingJobId = 1,
  kEndingOutcome,
  kEndingError,
  kEndingRetry,
  kEndingRetryIn,
  kEndingPayload,
  kEndingCause,
  kEndingToken,
  kEndingColumns = kEndingToken,
};

// Reads one element of the array, and sets the token of the attempt; NULL means any.
Ending read_ending(Datum element, NullableDatum* token) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(element);
  TupleDesc shape = shape_of_type(header, "_ending", kEndingColumns);
  RowValue given;
  read_fields(header, shape, given.values, given.nulls);
  ReleaseTupleDesc(shape);
  Datum outcome = given.value(kEndingOutcome);
  Ending ending = {kind_of(outcome), outcome};
  ending.job_id = DatumGetInt64(given.value(kEndingJobId));
  ending.may_retry = !given.has(kEndingRetry) || DatumGetBool(given.value(kEndingRetry));
  ending.error = given.field(kEndingError);
  ending.retry_in = given.field(kEndingRetryIn);
  ending.payload = given.field(kEndingPayload);
  ending.cause = given.field(kEndingCause);
  *token = given.field(kEndingToken);
  return ending;
}

// Ends at most `max_count` of the attempts.
void end_attempts(ReturnSetInfo* results, ArrayType* endings, int max_count) {
  Datum* elements;
  bool* nulls;
  int count;
  deconstruct_array(endings, ARR_ELEMTYPE(endings), -1, false, TYPALIGN_DOUBLE, &elements, &nulls,
                    &count);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  int ended = 0;
  for (int i = 0; i < count && ended < max_count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (nulls[i]) continue;
    NullableDatum token;
    Ending ending = read_ending(elements[i], &token);
    const char* state = end_attempt(&ends, ending, token).state;
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

// pulse._end_attempts(endings, max_count)
PULSE_FUNCTION(pulse_end_attempts) {
  pulse::begin_result_rows(fcinfo);
  if (!PG_ARGISNULL(0))
    pulse::end_attempts(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo),
                        PG_GETARG_ARRAYTYPE_P(0),
                        PG_ARGISNULL(1) ? PG_INT32_MAX : PG_GETARG_INT32(1));
  return static_cast<Datum>(0);
}
