// Adding: an add that a client may repeat. sql/job/add_request.sql decides about keys. The
// functions for keys act as the owner of the extension, all other code as the caller.
#include "access/catalog.hpp"
#include "access/local_settings.hpp"
#include "server/call_checks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/owner_call.hpp"
#include "server/postgres.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

constexpr int kMaxNameLength = 255;
constexpr int kJobArguments = 9;

// The arguments of add_job_for_request before the arguments of add_job.
enum { kClient, kKey, kHash, kFirstOfJob };

// The caller's role and the three arguments in front: who owns the key, and for which request.
struct Key {
  Datum role;
  Datum client;
  Datum key;
  Datum hash;
};

struct Answer {
  NullableDatum outcome;
  NullableDatum id;
  NullableDatum state;
  NullableDatum run_at;
};

Datum checked_name(FunctionCallInfo fcinfo, int argument, const char* what) {
  if (PG_ARGISNULL(argument))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s must not be null", what),
                    errhint("Name the client, and give each request a key of its own.")));
  check_name(what, PG_GETARG_TEXT_PP(argument), kMaxNameLength);
  return PG_GETARG_DATUM(argument);
}

Key key_of_call(FunctionCallInfo fcinfo) {
  return {CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
          checked_name(fcinfo, kClient, "client"), checked_name(fcinfo, kKey, "idempotency_key"),
          checked_name(fcinfo, kHash, "request_hash")};
}

Answer take_key(FunctionCallInfo fcinfo, const Key& key) {
  Oid types[] = {TEXTOID, TEXTOID, TEXTOID, TEXTOID};
  Datum row = as_owner(fcinfo, [&] {
    return OidFunctionCall4(internal_function("take_idempotency_key", lengthof(types), types),
                            key.role, key.client, key.key, key.hash);
  });
  HeapTupleHeader header = header_of(row);
  TupleDesc shape = shape_of(header);
  constexpr int kFields = 4;
  Datum values[kFields];
  bool nulls[kFields];
  if (shape->natts != kFields) elog(ERROR, "take_idempotency_key() returns another row");
  read_fields(header, shape, values, nulls);
  ReleaseTupleDesc(shape);
  return {
      {values[0], nulls[0]}, {values[1], nulls[1]}, {values[2], nulls[2]}, {values[3], nulls[3]}};
}

NullableDatum copied_field(int column, int16 length, bool by_value) {
  NullableDatum field;
  field.value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &field.isnull);
  if (!field.isnull) field.value = SPI_datumTransfer(field.value, by_value, length);
  return field;
}

// pulse.add_job(…), with the rights of the caller.
Answer add(const NullableDatum* arguments) {
  Oid types[kJobArguments] = {TEXTOID, JSONOID, TEXTOID,      TIMESTAMPTZOID, INT4OID,
                              TEXTOID, INT4OID, TEXTARRAYOID, TEXTOID};
  Datum values[kJobArguments];
  char nulls[kJobArguments];
  for (int i = 0; i < kJobArguments; i++) {
    values[i] = arguments[i].value;
    nulls[i] = arguments[i].isnull ? 'n' : ' ';
  }
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  without_jit([&] {
    if (SPI_execute_with_args("SELECT j.id, j.state::pg_catalog.text, j.run_at"
                              " FROM pulse.add_job($1, $2, $3, $4, $5, $6, $7, $8, $9) AS j",
                              kJobArguments, types, values, nulls, false, 0) != SPI_OK_SELECT ||
        SPI_processed != 1)
      elog(ERROR, "pulse.add_job() failed");
  });
  Answer added = {kNull, copied_field(1, sizeof(int64), true), copied_field(2, -1, false),
                  copied_field(3, sizeof(TimestampTz), true)};
  SPI_finish();
  added.outcome = given(CStringGetTextDatum("added"));
  return added;
}

void keep_answer(FunctionCallInfo fcinfo, const Key& key, const Answer& added) {
  Oid types[] = {TEXTOID, TEXTOID, TEXTOID, INT8OID, TEXTOID, TIMESTAMPTZOID};
  (void)as_owner(fcinfo, [&] {
    return OidFunctionCall6(internal_function("keep_answer", lengthof(types), types), key.role,
                            key.client, key.key, added.id.value, added.state.value,
                            added.run_at.value);
  });
}

}  // namespace
}  // namespace pulse

// pulse.add_job_for_request(client, idempotency_key, request_hash, and the arguments of add_job)
PULSE_FUNCTION(pulse_add_job_for_request) {
  pulse::Key key = pulse::key_of_call(fcinfo);
  pulse::Answer answer = pulse::take_key(fcinfo, key);
  if (pulse::text_is(answer.outcome.value, "new")) {
    answer = pulse::add(&fcinfo->args[pulse::kFirstOfJob]);
    pulse::keep_answer(fcinfo, key, answer);
  }
  PG_RETURN_DATUM(
      pulse::result_row(fcinfo, {answer.outcome, answer.id, answer.state, answer.run_at}));
}
