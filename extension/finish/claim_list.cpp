#include "finish/claim_list.hpp"

#include "access/columns.hpp"
#include "access/saved_plan.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

int by_id_and_token(const void* a, const void* b) {
  auto* left = static_cast<const NamedClaim*>(a);
  auto* right = static_cast<const NamedClaim*>(b);
  if (left->job_id != right->job_id) return left->job_id < right->job_id ? -1 : 1;
  if (left->token != right->token) return left->token < right->token ? -1 : 1;
  // If two elements name the same claim, the first element counts.
  return left->position - right->position;
}

ArgumentArray read_array(FunctionCallInfo fcinfo, int argument) {
  ArgumentArray array = {};
  if (PG_ARGISNULL(argument)) return array;
  ArrayType* given = PG_GETARG_ARRAYTYPE_P(argument);
  int16 length;
  bool by_value;
  char align;
  get_typlenbyvalalign(ARR_ELEMTYPE(given), &length, &by_value, &align);
  deconstruct_array(given, ARR_ELEMTYPE(given), length, by_value, align, &array.values,
                    &array.nulls, &array.count);
  array.is_given = true;
  return array;
}

bool has_written = false;  // whether the transaction had written before the present call

// Whether the records say that the claim ended its attempt with this outcome.
bool is_repeat(const NamedClaim& claim) {
  static SavedPlan query = {"SELECT pulse_internal.refused_token($1, $2, $3, $4) IS NULL",
                            4,
                            {INT8OID, INT8OID, TEXTOID, BOOLOID},
                            nullptr};
  NullableDatum arguments[] = {{Int64GetDatum(claim.job_id), false},
                               {Int64GetDatum(claim.token), false},
                               {CStringGetTextDatum(claim.outcome), false},
                               {BoolGetDatum(has_written), false}};
  return DatumGetBool(value_of_query(&query, arguments).value);
}

const char* answer_of(const NamedClaim& claim) {
  if (claim.lock == AttemptLock::kBusy) return "busy";
  bool is_accepted = claim.lock == AttemptLock::kLocked || is_repeat(claim);
  return is_accepted ? "accepted" : "stale";
}

}  // namespace

void prepare_to_end(const char* function) {
  PreventCommandIfReadOnly(function);
  (void)this_database();
  has_written = TransactionIdIsValid(GetTopTransactionIdIfAny());
}

NullableDatum require_repeat(const NullableDatum& job_id, const NullableDatum& token,
                             const char* outcome) {
  static SavedPlan query = {"SELECT pulse_internal.require_repeat($1, $2, $3, $4)",
                            4,
                            {INT8OID, INT8OID, TEXTOID, BOOLOID},
                            nullptr};
  NullableDatum arguments[] = {
      job_id, token, {CStringGetTextDatum(outcome), false}, {BoolGetDatum(has_written), false}};
  return value_of_query(&query, arguments);
}

void read_arrays(FunctionCallInfo fcinfo, ArgumentArray* arrays, int count, int required) {
  for (int i = 0; i < count; i++) {
    arrays[i] = read_array(fcinfo, i);
    if ((i < required || arrays[i].is_given) && arrays[i].count != arrays[0].count)
      ereport(ERROR, (errcode(kOutOfRange), errmsg("the arrays have different lengths"),
                      errdetail("Array 1 has %d elements, array %d has %d.", arrays[0].count, i + 1,
                                arrays[i].count),
                      errhint("Give one element per job in each.")));
  }
}

void read_claim_arrays(FunctionCallInfo fcinfo, ArgumentArray* arrays, int count, int required) {
  for (int i = 0; i < 2; i++) {
    ArrayType* array = PG_ARGISNULL(i) ? nullptr : PG_GETARG_ARRAYTYPE_P(i);
    if (!array || ARR_NDIM(array) > 1 || array_contains_nulls(array))
      ereport(ERROR, (errcode(kOutOfRange),
                      errmsg("%s must be a flat array without nulls", i ? "tokens" : "job_ids"),
                      errhint("Give the id and the token of each claimed job.")));
  }
  read_arrays(fcinfo, arrays, count, required);
}

ClaimList read_claims(const ArgumentArray& job_ids, const ArgumentArray& tokens,
                      const char* outcome) {
  auto* claims = static_cast<NamedClaim*>(palloc(sizeof(NamedClaim) * job_ids.count));
  for (int i = 0; i < job_ids.count; i++)
    claims[i] = {DatumGetInt64(job_ids.values[i]), DatumGetInt64(tokens.values[i]), i, outcome,
                 AttemptLock::kNotRunning};
  qsort(claims, job_ids.count, sizeof(NamedClaim), by_id_and_token);
  return {claims, job_ids.count};
}

bool outwait_worker(RunningJobs* jobs, int64* limit) {
  constexpr int64 kPatienceUs = 1000000;
  TupleTableSlot* row = jobs->ids.row;
  // A transaction that keeps its snapshot would fail after a change of the row.
  if (jobs->keeps_snapshot || TTS_EMPTY(row) || slot_attisnull(row, kJobWorkerId)) return false;
  if (*limit == 0) *limit = monotonic_us() + kPatienceUs;
  return outwait_holders(LockKind::kWorker, DatumGetInt64(value_of(row, kJobWorkerId)), *limit);
}

void answer_claims(const ClaimList& list, const ArgumentArray& job_ids, FunctionCallInfo fcinfo) {
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  auto** answers = static_cast<const char**>(palloc(sizeof(char*) * list.count));
  for (int i = 0; i < list.count; i++) answers[list.claims[i].position] = answer_of(list.claims[i]);
  for (int i = 0; i < job_ids.count; i++) {
    Datum values[] = {job_ids.values[i], CStringGetTextDatum(answers[i])};
    bool no_nulls[] = {false, false};
    tuplestore_putvalues(results->setResult, results->setDesc, values, no_nulls);
  }
}

}  // namespace pulse
