// pulse._end_attempts(endings): see sql/attempt.sql.
#include "server/postgres.hpp"

#include "access/saved_plan.hpp"
#include "claim/claiming_worker.hpp"
#include "finish/attempt_end.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// Of type pulse._ending.
enum EndingColumn {
  kEndingJobId,
  kEndingOutcome,
  kEndingError,
  kEndingRetry,
  kEndingRetryIn,
  kEndingPayload,
  kEndingCause,
  kEndingColumns,
};

Ending::Kind kind_of(Datum outcome) {
  if (text_is(outcome, "lost")) return Ending::kLost;
  if (text_is(outcome, "released")) return Ending::kReleased;
  return text_is(outcome, "interrupted") ? Ending::kInterrupted : Ending::kOther;
}

Ending read_ending(Datum element) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(element);
  TupleDesc shape = shape_of(header);
  if (shape->natts != kEndingColumns)
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("type pulse._ending has %d attributes, not %d", shape->natts,
                    static_cast<int>(kEndingColumns)),
             errhint("Somebody has altered it. ALTER EXTENSION pg_pulse UPDATE, or undo that.")));
  Datum values[kEndingColumns];
  bool nulls[kEndingColumns];
  read_fields(header, shape, values, nulls);
  ReleaseTupleDesc(shape);
  auto field = [&](EndingColumn column) -> NullableDatum {
    return {values[column], nulls[column]};
  };
  bool may_retry = nulls[kEndingRetry] || DatumGetBool(values[kEndingRetry]);
  return {DatumGetInt64(values[kEndingJobId]),
          values[kEndingOutcome],
          kind_of(values[kEndingOutcome]),
          may_retry,
          false,
          field(kEndingError),
          field(kEndingRetryIn),
          field(kEndingPayload),
          field(kEndingCause)};
}

void answer(ReturnSetInfo* results, const Ending& ending, const char* state) {
  Datum values[] = {Int64GetDatum(ending.job_id), CStringGetTextDatum(state), ending.outcome};
  bool nulls[] = {false, false, false};
  tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
}

void end_in_full(ReturnSetInfo* results, Oid type, ArrayType* endings) {
  static SavedPlan query = {
      "SELECT id, state, outcome FROM pulse._end_attempts_in_full($1)", 1, {}, nullptr};
  set_parameter_type(&query, 0, type);
  Datum values[] = {PointerGetDatum(endings)};
  put_plan_rows(&query, values, nullptr, results->setResult);
}

void end_attempts(ReturnSetInfo* results, Oid type, ArrayType* endings) {
  Datum* elements;
  bool* nulls;
  int count, left = 0;
  Oid element = ARR_ELEMTYPE(endings);
  deconstruct_array(endings, element, -1, false, TYPALIGN_DOUBLE, &elements, &nulls, &count);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  for (int i = 0; i < count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (nulls[i]) continue;
    Ending ending = read_ending(elements[i]);
    if (const char* state = end_attempt(&ends, ending, {0, 0}))
      answer(results, ending, state);
    else
      elements[left++] = elements[i];
  }
  close_attempt_ends(&ends);
  if (left > 0)
    end_in_full(results, type,
                construct_array(elements, left, element, -1, false, TYPALIGN_DOUBLE));
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_end_attempts) {
  pulse::begin_result_rows(fcinfo);
  if (!PG_ARGISNULL(0))
    pulse::end_attempts(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo),
                        get_fn_expr_argtype(fcinfo->flinfo, 0), PG_GETARG_ARRAYTYPE_P(0));
  return static_cast<Datum>(0);
}
