// pulse._recover_owner: what a worker ran that does not live. See sql/lost.sql.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/saved_plan.hpp"
#include "claim/claiming_worker.hpp"
#include "claim/in_place_claim.hpp"
#include "finish/attempt_end.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

enum Argument { kWorkerId, kOutcome, kCause, kReason, kMax, kArguments };

Ending ending_of(FunctionCallInfo fcinfo) {
  Ending ending = {};
  ending.outcome = fcinfo->args[kOutcome].value;
  ending.kind = text_is(ending.outcome, "lost") ? Ending::kLost : Ending::kInterrupted;
  ending.may_retry = true;
  ending.error = fcinfo->args[kReason];
  ending.retry_in.isnull = ending.payload.isnull = true;
  ending.cause = fcinfo->args[kCause];
  return ending;
}

// How many more the call may end; 0 also when nothing is left.
int recover_plain(FunctionCallInfo fcinfo, Tuplestorestate* results, TupleDesc shape) {
  int64 worker_id = PG_GETARG_INT64(kWorkerId);
  int max_count = PG_ARGISNULL(kMax) ? PG_INT32_MAX : PG_GETARG_INT32(kMax);
  Ending ending = ending_of(fcinfo);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  RunningIds ids = running_ids(&worker_id, max_count, ends.jobs.relation, ends.jobs.snapshot);
  bool are_all = ids.count < max_count;
  qsort(ids.elements, ids.count, sizeof(int64), by_value);
  if (ids.count > 0) expect_ids(&ends.ids, ids.elements[0], ids.elements[ids.count - 1], ids.count);
  int ended = 0;
  for (int i = 0; i < ids.count; i++) {
    CHECK_FOR_INTERRUPTS();
    ending.job_id = ids.elements[i];
    const char* state = end_attempt(&ends, ending, {kJobWorkerId, worker_id});
    if (!state) continue;
    ended++;
    Datum values[] = {Int64GetDatum(ending.job_id), CStringGetTextDatum(state)};
    bool nulls[] = {false, false};
    tuplestore_putvalues(results, shape, values, nulls);
  }
  close_attempt_ends(&ends);
  return are_all && ended == ids.count ? 0 : max_count - ended;
}

// What has a key or is to be cancelled, and where others hold some of the first ones, the rest.
void recover_in_full(FunctionCallInfo fcinfo, Tuplestorestate* results, int max_count) {
  static SavedPlan query = {"SELECT id, state FROM pulse._recover_in_full($1, $2, $3, $4, $5)",
                            kArguments,
                            {INT8OID, TEXTOID, TEXTOID, TEXTOID, INT4OID},
                            nullptr};
  Datum values[kArguments];
  char nulls[kArguments];
  for (int i = 0; i < kArguments; i++) {
    values[i] = fcinfo->args[i].value;
    nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
  }
  values[kMax] = Int32GetDatum(max_count);
  nulls[kMax] = ' ';
  put_plan_rows(&query, values, nulls, results);
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_recover_owner) {
  pulse::begin_result_rows(fcinfo);
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  int max_count = pulse::recover_plain(fcinfo, results->setResult, results->setDesc);
  if (max_count > 0) pulse::recover_in_full(fcinfo, results->setResult, max_count);
  return static_cast<Datum>(0);
}
