#include "server/call_checks.hpp"

#include "server/clocks.hpp"
#include "server/errors.hpp"

extern "C" {
#include "access/detoast.h"
#include "mb/pg_wchar.h"
}

namespace pulse {
namespace {

constexpr int kDaysOfTenYears = 3653;  // with three leap days

bool is_step(const char* component, int length) {
  return length == 0 || (length == 1 && component[0] == '.') ||
         (length == 2 && component[0] == '.' && component[1] == '.');
}

bool stays_beneath(const char* name, int length) {
  int start = 0;
  for (int i = 0; i <= length; i++) {
    auto character = static_cast<unsigned char>(i < length ? name[i] : '/');
    if (character < ' ' || character == 0x7f || character == '\\') return false;
    if (character != '/') continue;
    if (is_step(name + start, i - start)) return false;
    start = i + 1;
  }
  return true;
}

// A database of encoding SQL_ASCII takes any bytes. Programs read texts as UTF-8, and the server
// refuses a program every answer that has a text of other bytes: one such job stops all claims.
bool takes_any_bytes() { return GetDatabaseEncoding() == PG_SQL_ASCII; }

bool is_utf8(const char* bytes, int length) {
  return pg_verify_mbstr(PG_UTF8, bytes, length, true);
}

}  // namespace

void check_utf8(const char* what, const text* value) {
  if (takes_any_bytes() && !is_utf8(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)))
    ereport(ERROR,
            (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("%s is not UTF-8", what),
             errhint("The database has encoding SQL_ASCII, which converts nothing: send UTF-8.")));
}

Datum readable(Datum value) {
  if (!takes_any_bytes()) return value;
  text* given = DatumGetTextPP(value);
  const char* bytes = VARDATA_ANY(given);
  int length = VARSIZE_ANY_EXHDR(given);
  if (is_utf8(bytes, length)) return value;
  text* read = cstring_to_text_with_len(bytes, length);
  char* next = VARDATA(read);
  char* end = next + length;
  while (next < end) {
    int size = pg_encoding_mblen(PG_UTF8, next);
    if (size <= end - next && is_utf8(next, size))
      next += size;
    else
      *next++ = '?';
  }
  return PointerGetDatum(read);
}

void check_name(const char* what, text* name, int max_length) {
  int characters = pg_mbstrlen_with_len(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
  if (characters < 1 || characters > max_length)
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s has %d characters", what, characters),
                    errhint("It must have 1 to %d.", max_length)));
  check_utf8(what, name);
}

void check_identifier(text* identifier) {
  check_name("identifier", identifier, kMaxName);
  if (!stays_beneath(VARDATA_ANY(identifier), VARSIZE_ANY_EXHDR(identifier)))
    ereport(ERROR,
            (errcode(kOutOfRange),
             errmsg("identifier %s cannot name a task",
                    quote_literal_cstr(text_to_cstring(identifier))),
             errhint("Use letters, digits and the like, with single slashes between folders.")));
}

void check_document(const char* what, Datum document) {
  Size size = toast_raw_datum_size(document) - VARHDRSZ;
  if (size > kMaxDocument)
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s has %zu bytes, out of range", what, size),
                    errhint("It may have %zu. Store the data elsewhere and pass a reference.",
                            kMaxDocument)));
  if (takes_any_bytes()) check_utf8(what, DatumGetTextPP(document));
}

void check_duration(const char* what, Datum value, Datum lowest) {
  Interval highest = {};
  highest.day = kDaysOfTenYears;
  if (DatumGetBool(DirectFunctionCall2(interval_ge, value, lowest)) &&
      DatumGetBool(DirectFunctionCall2(interval_le, value, IntervalPGetDatum(&highest))))
    return;
  auto text_of = [](Datum interval) {
    return DatumGetCString(DirectFunctionCall1(interval_out, interval));
  };
  ereport(ERROR, (errcode(kOutOfRange), errmsg("%s is %s, out of range", what, text_of(value)),
                  errhint("It must be between %s and 10 years.", text_of(lowest))));
}

void check_run_at(TimestampTz run_at) {
  constexpr TimestampTz kElevenYears = INT64CONST(11) * 366 * USECS_PER_DAY;
  if (TIMESTAMP_NOT_FINITE(run_at) || run_at > END_TIMESTAMP - kElevenYears)
    ereport(ERROR,
            (errcode(kOutOfRange), errmsg("run_at is %s, out of range", timestamptz_to_str(run_at)),
             errhint("It must be a moment before the year 294265.")));
}

void check_number(const char* what, int64 value, int64 lowest, int64 highest) {
  if (value < lowest || value > highest)
    ereport(
        ERROR,
        (errcode(kOutOfRange), errmsg("%s is " INT64_FORMAT ", out of range", what, value),
         errhint("It must be between " INT64_FORMAT " and " INT64_FORMAT ".", lowest, highest)));
}

Datum* text_elements(ArrayType* array, const char* what, int* count) {
  if (ARR_NDIM(array) > 1 || array_contains_nulls(array))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s must be a flat array without nulls", what),
                    errhint("Give each name once, or NULL for none.")));
  Datum* elements;
  deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, nullptr, count);
  return elements;
}

void require_arguments(FunctionCallInfo fcinfo, std::initializer_list<int> numbers) {
  for (int number : numbers)
    if (PG_ARGISNULL(number))
      ereport(ERROR,
              (errcode(kOutOfRange), errmsg("argument %d must not be null", number + 1),
               errhint("Give a value; the reference names the arguments that may be NULL.")));
}

static bool has_null(FunctionCallInfo fcinfo) {
  for (int i = 0; i < PG_NARGS(); i++)
    if (PG_ARGISNULL(i)) return true;
  return false;
}

void warn_in_block(const char* what) {
  // A frozen clock belongs to a test, whose transaction sees all rows of the test.
  if (!IsTransactionBlock() || clock_is_frozen()) return;
  ereport(
      WARNING,
      (errmsg("%s inside a transaction block counts only once that commits", what),
       errhint("Call it by itself; a client library that opens transactions needs autocommit.")));
}

}  // namespace pulse

// pulse_internal.check_name(what, value, longest)
PULSE_FUNCTION(pulse_check_name) {
  pulse::require_arguments(fcinfo, {0, 2});
  char* what = text_to_cstring(PG_GETARG_TEXT_PP(0));
  if (PG_ARGISNULL(1))
    ereport(ERROR, (errcode(pulse::kOutOfRange), errmsg("%s must not be null", what),
                    errhint("Give it a name of 1 to %d characters.", PG_GETARG_INT32(2))));
  pulse::check_name(what, PG_GETARG_TEXT_PP(1), PG_GETARG_INT32(2));
  PG_RETURN_VOID();
}

// pulse_internal.check_identifier(identifier)
PULSE_FUNCTION(pulse_check_identifier) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, (errcode(pulse::kOutOfRange), errmsg("identifier must not be null"),
                    errhint("Name the task.")));
  pulse::check_identifier(PG_GETARG_TEXT_PP(0));
  PG_RETURN_VOID();
}

// pulse_internal.check_number(what, value, lowest, highest): a NULL passes.
PULSE_FUNCTION(pulse_check_number) {
  if (!pulse::has_null(fcinfo))
    pulse::check_number(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_INT32(1),
                        PG_GETARG_INT32(2), PG_GETARG_INT32(3));
  PG_RETURN_VOID();
}

// pulse_internal.readable(value): strict
PULSE_FUNCTION(pulse_readable) { PG_RETURN_DATUM(pulse::readable(PG_GETARG_DATUM(0))); }

// pulse_internal.check_document(what, document): a NULL passes.
PULSE_FUNCTION(pulse_check_document) {
  if (!pulse::has_null(fcinfo))
    pulse::check_document(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_DATUM(1));
  PG_RETURN_VOID();
}

// pulse_internal.check_duration(what, value, lowest): a NULL passes.
PULSE_FUNCTION(pulse_check_duration) {
  if (!pulse::has_null(fcinfo))
    pulse::check_duration(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_DATUM(1),
                          PG_GETARG_DATUM(2));
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_check_run_at) {
  pulse::check_run_at(PG_GETARG_TIMESTAMPTZ(0));
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_in_client_block) { PG_RETURN_BOOL(IsTransactionBlock()); }

// pulse_internal.warn_in_block(what)
PULSE_FUNCTION(pulse_warn_in_block) {
  pulse::warn_in_block(text_to_cstring(PG_GETARG_TEXT_PP(0)));
  PG_RETURN_VOID();
}

// pulse_internal.require_read_committed(what, hint): raises PU007 where a transaction has one
// snapshot for all statements. In 0.1.0 the caller gives no hint.
PULSE_FUNCTION(pulse_require_read_committed) {
  if (IsolationUsesXactSnapshot())
    ereport(ERROR, (errcode(pulse::kWrongIsolation),
                    errmsg("%s needs isolation level READ COMMITTED",
                           text_to_cstring(PG_GETARG_TEXT_PP(0))),
                    PG_NARGS() > 1 ? errhint("%s", text_to_cstring(PG_GETARG_TEXT_PP(1)))
                                   : errhint("SET TRANSACTION ISOLATION LEVEL READ COMMITTED.")));
  PG_RETURN_BOOL(true);
}
