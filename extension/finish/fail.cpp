// pulse.fail, fail_many and release: see sql/finish.sql for their contract. What is as it should be
// is done here; whatever is not, and every refusal, is left to the SQL functions of the same
// arguments.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/saved_plan.hpp"
#include "access/slow_path.hpp"
#include "claim/claiming_worker.hpp"
#include "finish/attempt_end.hpp"
#include "server/argument_checks.hpp"
#include "server/compat.hpp"
#include "server/shared_memory.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// Arguments of fail_many, and of fail, which has one of each.
enum Argument { kIds, kTokens, kErrors, kRetries, kDelays, kPayloads, kArguments };
constexpr int kReleaseArguments = kTokens + 1;

constexpr int kMonthsOfTenYears = 120;

// One argument of a plural call.
struct Column {
  bool is_given;
  Datum* values;
  bool* nulls;

  bool has(int i) const { return is_given && !nulls[i]; }
  NullableDatum at(int i) const {
    return has(i) ? NullableDatum{values[i], false} : NullableDatum{static_cast<Datum>(0), true};
  }
};

struct Calls {
  FunctionCallInfo given;
  int arguments;
  int count;
  Column column[kArguments];
  int* order;  // by id, so that two callers with the same jobs never wait for one another
  const char** outcomes;  // NULL: SQL is to decide
};

bool is_allowed_delay(Datum delay) {
  Interval none = {};
  Interval longest = {};
  longest.month = kMonthsOfTenYears;
  return DatumGetBool(DirectFunctionCall2(interval_ge, delay, IntervalPGetDatum(&none))) &&
         DatumGetBool(DirectFunctionCall2(interval_le, delay, IntervalPGetDatum(&longest)));
}

Ending failure(int64 job_id, Datum error, const NullableDatum& retry, const NullableDatum& retry_in,
               const NullableDatum& payload) {
  Ending ending = {};
  ending.job_id = job_id;
  ending.outcome = CStringGetTextDatum("failed");
  ending.may_retry = retry.isnull || DatumGetBool(retry.value);
  ending.error = {error, false};
  ending.retry_in = retry_in;
  ending.payload = payload;
  ending.cause.isnull = true;
  return ending;
}

Ending release_of(int64 job_id) {
  Ending ending = {};
  ending.job_id = job_id;
  ending.outcome = CStringGetTextDatum("released");
  ending.kind = Ending::kReleased;
  ending.may_retry = ending.keeps_cause = true;
  ending.error.isnull = ending.retry_in.isnull = ending.payload.isnull = ending.cause.isnull = true;
  return ending;
}

// --- one job ------------------------------------------------------------------------------------

bool is_ordinary(FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(kIds) || PG_ARGISNULL(kTokens) || PG_ARGISNULL(kErrors)) return false;
  return PG_ARGISNULL(kDelays) || is_allowed_delay(PG_GETARG_DATUM(kDelays));
}

// NULL where SQL is to decide.
const char* fail_at_once(FunctionCallInfo fcinfo) {
  if (!is_ordinary(fcinfo)) return nullptr;
  const NullableDatum* given = fcinfo->args;
  int64 token = DatumGetInt64(given[kTokens].value);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  const char* state = end_attempt(&ends,
                                  failure(DatumGetInt64(given[kIds].value), given[kErrors].value,
                                          given[kRetries], given[kDelays], given[kPayloads]),
                                  {kJobToken, token});
  close_attempt_ends(&ends);
  return state;
}

// --- many ---------------------------------------------------------------------------------------

bool read_column(Calls* calls, int argument) {
  FunctionCallInfo fcinfo = calls->given;
  Column* column = &calls->column[argument];
  if (PG_ARGISNULL(argument)) return argument > kErrors;
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(argument);
  if (ARR_NDIM(array) > 1 || (argument <= kErrors && array_contains_nulls(array))) return false;
  int16 length;
  bool by_value;
  char align;
  int count;
  get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
  deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &column->values,
                    &column->nulls, &count);
  column->is_given = true;
  if (argument == kIds) calls->count = count;
  return count == calls->count;
}

// False when something is not as it should be.
bool read_calls(Calls* calls, FunctionCallInfo fcinfo, int arguments) {
  *calls = {};
  calls->given = fcinfo;
  calls->arguments = arguments;
  for (int i = 0; i < arguments; i++)
    if (!read_column(calls, i)) return false;
  const Column& delays = calls->column[kDelays];
  const Column& payloads = calls->column[kPayloads];
  for (int i = 0; i < calls->count; i++) {
    if (delays.has(i) && !is_allowed_delay(delays.values[i])) return false;
    if (payloads.has(i)) check_document("payload", payloads.values[i]);
  }
  return true;
}

int by_id(const void* a, const void* b, void* ids) {
  auto* values = static_cast<Datum*>(ids);
  int64 left = DatumGetInt64(values[*static_cast<const int*>(a)]);
  int64 right = DatumGetInt64(values[*static_cast<const int*>(b)]);
  return left < right ? -1 : left > right;
}

Ending ending_of(const Calls& calls, int i) {
  int64 id = DatumGetInt64(calls.column[kIds].values[i]);
  if (calls.arguments == kReleaseArguments) return release_of(id);
  return failure(id, calls.column[kErrors].values[i], calls.column[kRetries].at(i),
                 calls.column[kDelays].at(i), calls.column[kPayloads].at(i));
}

// How many are left to SQL.
int end_what_is_plain(Calls* calls) {
  calls->order = static_cast<int*>(palloc(sizeof(int) * Max(calls->count, 1)));
  calls->outcomes = static_cast<const char**>(palloc0(sizeof(char*) * Max(calls->count, 1)));
  for (int i = 0; i < calls->count; i++) calls->order[i] = i;
  qsort_arg(calls->order, calls->count, sizeof(int), by_id, calls->column[kIds].values);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  auto id_at = [calls](int n) {
    return DatumGetInt64(calls->column[kIds].values[calls->order[n]]);
  };
  if (calls->count > 0) expect_ids(&ends.ids, id_at(0), id_at(calls->count - 1), calls->count);
  int left = 0;
  for (int n = 0; n < calls->count; n++) {
    CHECK_FOR_INTERRUPTS();
    int i = calls->order[n];
    int64 token = DatumGetInt64(calls->column[kTokens].values[i]);
    if (end_attempt(&ends, ending_of(*calls, i), {kJobToken, token}))
      calls->outcomes[i] = "accepted";
    else
      left++;
  }
  close_attempt_ends(&ends);
  return left;
}

// Of an argument what belongs to the jobs that are left.
Datum what_is_left(const Calls& calls, int argument, int left) {
  FunctionCallInfo fcinfo = calls.given;
  const Column& column = calls.column[argument];
  auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * left));
  auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * left));
  int count = 0;
  for (int i = 0; i < calls.count; i++) {
    if (calls.outcomes[i]) continue;
    values[count] = column.values[i];
    nulls[count++] = column.nulls[i];
  }
  int16 length;
  bool by_value;
  char align;
  Oid element = ARR_ELEMTYPE(PG_GETARG_ARRAYTYPE_P(argument));
  get_typlenbyvalalign(element, &length, &by_value, &align);
  int dimension = count, lower_bound = 1;
  return PointerGetDatum(construct_md_array(values, nulls, 1, &dimension, &lower_bound, element,
                                            length, by_value, align));
}

SavedPlan fail_in_full = {
    "SELECT id, outcome FROM pulse._fail_many_in_full($1, $2, $3, $4, $5, $6)",
    kArguments,
    {INT8ARRAYOID, INT8ARRAYOID, TEXTARRAYOID, BOOLARRAYOID, INTERVALARRAYOID, JSONARRAYOID},
    nullptr};
SavedPlan release_in_full = {"SELECT id, outcome FROM pulse._release_in_full($1, $2)",
                             kReleaseArguments,
                             {INT8ARRAYOID, INT8ARRAYOID},
                             nullptr};

// All of it through SQL, which says what is wrong.
void end_all_in_full(SavedPlan* query, FunctionCallInfo fcinfo) {
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  Datum values[kArguments];
  char nulls[kArguments];
  for (int i = 0; i < query->count; i++) {
    values[i] = fcinfo->args[i].value;
    nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
  }
  put_plan_rows(query, values, nulls, results->setResult);
}

const char* known_outcome(HeapTuple row) {
  static const char* const outcomes[] = {"accepted", "busy", "stale"};
  bool isnull;
  Datum outcome = SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &isnull);
  for (const char* known : outcomes)
    if (!isnull && text_is(outcome, known)) return known;
  elog(ERROR, "an outcome that is not known");
}

void end_what_is_left(Calls* calls, SavedPlan* query, int left) {
  Datum values[kArguments];
  char nulls[kArguments];
  for (int i = 0; i < calls->arguments; i++) {
    nulls[i] = calls->column[i].is_given ? ' ' : 'n';
    values[i] = calls->column[i].is_given ? what_is_left(*calls, i, left) : static_cast<Datum>(0);
  }
  run_saved_plan(query, values, nulls, [calls](HeapTuple* rows, uint64 count) {
    uint64 next = 0;
    for (int i = 0; i < calls->count && next < count; i++)
      if (!calls->outcomes[i]) calls->outcomes[i] = known_outcome(rows[next++]);
  });
}

void end_many(SavedPlan* query, FunctionCallInfo fcinfo) {
  begin_result_rows(fcinfo);
  Calls calls;
  if (!read_calls(&calls, fcinfo, query->count)) return end_all_in_full(query, fcinfo);
  if (int left = end_what_is_plain(&calls); left > 0) end_what_is_left(&calls, query, left);
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (int i = 0; i < calls.count; i++) {
    Datum values[] = {calls.column[kIds].values[i], CStringGetTextDatum(calls.outcomes[i])};
    bool nulls[] = {false, false};
    tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
  }
}

}  // namespace
}  // namespace pulse

// pulse.fail(job_id, token, error, retry, retry_in, payload).
PULSE_FUNCTION(pulse_fail) {
  PreventCommandIfReadOnly("fail");
  PreventCommandDuringRecovery("fail");
  (void)pulse::this_database();
  if (!PG_ARGISNULL(pulse::kPayloads))
    pulse::check_document("payload", PG_GETARG_DATUM(pulse::kPayloads));
  const char* state = pulse::fail_at_once(fcinfo);
  if (!state) return pulse::call_in_full("_fail_in_full", fcinfo);
  PG_RETURN_TEXT_P(cstring_to_text(state));
}

// pulse.fail_many(job_ids, tokens, errors, retry, retry_in, payloads).
PULSE_FUNCTION(pulse_fail_many) {
  PreventCommandIfReadOnly("fail_many");
  PreventCommandDuringRecovery("fail_many");
  (void)pulse::this_database();
  pulse::end_many(&pulse::fail_in_full, fcinfo);
  return static_cast<Datum>(0);
}

// pulse.release(job_ids, tokens).
PULSE_FUNCTION(pulse_release) {
  PreventCommandIfReadOnly("release");
  PreventCommandDuringRecovery("release");
  (void)pulse::this_database();
  pulse::end_many(&pulse::release_in_full, fcinfo);
  return static_cast<Datum>(0);
}
