#include "finish/past_claim.hpp"

#include "access/saved_plan.hpp"
#include "server/errors.hpp"

namespace pulse {
namespace {

// The value that the query returns, in the present memory context; NULL for an SQL NULL.
char* text_result(SavedPlan* query, Datum* values, const char* nulls) {
  MemoryContext context = CurrentMemoryContext;
  char* value = nullptr;
  run_saved_plan(query, values, nulls, [&](HeapTuple* rows, uint64) {
    const char* found = SPI_getvalue(rows[0], SPI_tuptable->tupdesc, 1);
    if (found) value = MemoryContextStrdup(context, found);
  });
  return value;
}

}  // namespace

const char* refusal_of(const NullableDatum& job_id, const NullableDatum& token,
                       const char* outcome) {
  static SavedPlan query = {
      "SELECT pulse._refused_token($1, $2, $3)", 3, {INT8OID, INT8OID, TEXTOID}, nullptr};
  Datum values[] = {job_id.value, token.value, CStringGetTextDatum(outcome)};
  char nulls[] = {job_id.isnull ? 'n' : ' ', token.isnull ? 'n' : ' ', ' '};
  return text_result(&query, values, nulls);
}

void raise_stale(const NullableDatum& job_id, const char* reason) {
  const char* id = job_id.isnull ? "<NULL>" : psprintf(INT64_FORMAT, DatumGetInt64(job_id.value));
  ereport(ERROR, (errcode(kClaimLost), errmsg("the claim of job %s is lost", id),
                  errdetail_internal("%s", reason),
                  errhint("The attempt was recovered or has ended; its outcome does not count.")));
  pg_unreachable();
}

void require_repeat(const NullableDatum& job_id, const NullableDatum& token, const char* outcome) {
  const char* reason = refusal_of(job_id, token, outcome);
  if (reason) raise_stale(job_id, reason);
}

text* state_of_job(Datum job_id) {
  static SavedPlan query = {"SELECT pulse._state_of($1)", 1, {INT8OID}, nullptr};
  Datum values[] = {job_id};
  const char* state = text_result(&query, values, nullptr);
  return state ? cstring_to_text(state) : nullptr;
}

}  // namespace pulse

// pulse._raise_stale(job_id, reason)
PULSE_FUNCTION(pulse_raise_stale) {
  pulse::raise_stale({PG_ARGISNULL(0) ? 0 : PG_GETARG_DATUM(0), PG_ARGISNULL(0)},
                     text_to_cstring(PG_GETARG_TEXT_PP(1)));
}
