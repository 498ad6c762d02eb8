#include "finish/past_claim.hpp"

#include "server/errors.hpp"

namespace pulse {
namespace {

// The text that the query returns, in the present memory context; NULL for an SQL NULL.
char* text_result(const char* query, int count, Oid* types, Datum* values, const char* nulls) {
  MemoryContext context = CurrentMemoryContext;
  if (SPI_connect() != SPI_OK_CONNECT ||
      SPI_execute_with_args(query, count, types, values, nulls, false, 0) != SPI_OK_SELECT)
    elog(ERROR, "could not run: %s", query);
  const char* found = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
  char* value = found ? MemoryContextStrdup(context, found) : nullptr;
  SPI_finish();
  return value;
}

}  // namespace

const char* refusal_of(const NullableDatum& job_id, const NullableDatum& token,
                       const char* outcome) {
  Oid types[] = {INT8OID, INT8OID, TEXTOID};
  Datum values[] = {job_id.value, token.value, CStringGetTextDatum(outcome)};
  char nulls[] = {job_id.isnull ? 'n' : ' ', token.isnull ? 'n' : ' ', ' '};
  return text_result("SELECT pulse._refused_token($1, $2, $3)", 3, types, values, nulls);
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
  Oid types[] = {INT8OID};
  const char* state = text_result("SELECT pulse._state_of($1)", 1, types, &job_id, nullptr);
  return state ? cstring_to_text(state) : nullptr;
}

}  // namespace pulse

// pulse._raise_stale(job_id, reason)
PULSE_FUNCTION(pulse_raise_stale) {
  pulse::raise_stale({PG_ARGISNULL(0) ? 0 : PG_GETARG_DATUM(0), PG_ARGISNULL(0)},
                     text_to_cstring(PG_GETARG_TEXT_PP(1)));
}
