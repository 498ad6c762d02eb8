// pulse.fail, fail_many, fail_late, release and snooze: see sql/worker/finish.sql for the
// contracts.
#include "server/postgres.hpp"

#include "access/local_settings.hpp"
#include "access/saved_plan.hpp"
#include "finish/attempt_end.hpp"
#include "finish/claim_list.hpp"
#include "server/call_checks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"

namespace pulse {
namespace {

// The arguments of fail_many, and of fail, which takes single values instead of arrays.
enum Argument { kIds, kTokens, kErrors, kRetries, kDelays, kPayloads, kArguments };
constexpr int kReleaseArguments = kTokens + 1;

// The arguments of fail_late after the errors.
enum LateArgument { kCauses = kErrors + 1, kLatePayloads, kLateArguments };

// The arguments of snooze after the claim.
enum SnoozeArgument { kDelay = kTokens + 1, kCheckpoint };

void check_error(const NullableDatum& error) {
  if (error.isnull)
    ereport(ERROR, (errcode(kOutOfRange), errmsg("error must not be null"),
                    errhint("Say what went wrong; it is stored as last_error.")));
}

void check_delay(const char* what, const NullableDatum& delay) {
  Interval none = {};
  if (!delay.isnull) check_duration(what, delay.value, IntervalPGetDatum(&none));
}

void check_document_if_any(const char* what, const NullableDatum& document) {
  if (!document.isnull) check_document(what, document.value);
}

Ending failure(const NullableDatum& error, const NullableDatum& retry,
               const NullableDatum& retry_in, const NullableDatum& payload) {
  Ending ending = {Ending::kOther, CStringGetTextDatum("failed")};
  ending.may_retry = retry.isnull || DatumGetBool(retry.value);
  ending.error = error;
  ending.retry_in = retry_in;
  ending.payload = payload;
  return ending;
}

// A snooze fails a job that may not run again.
Ending snooze_ending(const NullableDatum& delay, const NullableDatum& checkpoint) {
  Ending ending = {Ending::kSnoozed, CStringGetTextDatum("failed")};
  ending.error = {CStringGetTextDatum("snoozed"), false};
  ending.retry_in = delay;
  ending.checkpoint = checkpoint;
  return ending;
}

// --- one job ------------------------------------------------------------------------------------

// Returns the next state, or NULL when the job runs no attempt with this token. Waits for a
// transaction that has locked the job.
const char* end_one(const NullableDatum& job_id, const NullableDatum& token, Ending ending) {
  if (job_id.isnull || token.isnull) return nullptr;
  ending.job_id = DatumGetInt64(job_id.value);
  AttemptEnds ends;
  open_attempt_ends(&ends);
  EndedAttempt ended = end_attempt(&ends, ending, token, Patience::kWaits);
  close_attempt_ends(&ends);
  return ended.state;
}

// Returns the next state.
NullableDatum fail_one(const NullableDatum* given) {
  check_error(given[kErrors]);
  check_delay("retry_in", given[kDelays]);
  check_document_if_any("payload", given[kPayloads]);
  Ending ending = failure(given[kErrors], given[kRetries], given[kDelays], given[kPayloads]);
  const char* state = end_one(given[kIds], given[kTokens], ending);
  if (state) return {CStringGetTextDatum(state), false};
  return require_repeat(given[kIds], given[kTokens], "failed");
}

void snooze_one(const NullableDatum* given) {
  if (given[kDelay].isnull)
    ereport(ERROR, (errcode(kOutOfRange), errmsg("delay must not be null"),
                    errhint("Say for how long the job sleeps.")));
  check_delay("delay", given[kDelay]);
  check_document_if_any("checkpoint", given[kCheckpoint]);
  Ending ending = snooze_ending(given[kDelay], given[kCheckpoint]);
  if (!end_one(given[kIds], given[kTokens], ending))
    require_repeat(given[kIds], given[kTokens], "snoozed");
}

// --- many ---------------------------------------------------------------------------------------

template <typename EndingOf>
void end_all(ClaimList* list, EndingOf ending_of) {
  AttemptEnds ends;
  open_attempt_ends(&ends);
  auto end = [&](const NamedClaim& claim) {
    Ending ending = ending_of(claim.position);
    ending.job_id = claim.job_id;
    return end_attempt(&ends, ending, {Int64GetDatum(claim.token), false}).lock;
  };
  // JIT is off once for all statements of these ends.
  without_jit([&] { end_each(list, &ends.jobs, end); });
  close_attempt_ends(&ends);
}

template <typename EndingOf>
void end_many(FunctionCallInfo fcinfo, const ArgumentArray* arrays, const char* outcome,
              EndingOf ending_of) {
  begin_result_rows(fcinfo);
  ClaimList list = read_claims(arrays[kIds], arrays[kTokens], outcome);
  end_all(&list, ending_of);
  answer_claims(list, arrays[kIds], fcinfo);
}

void fail_many(FunctionCallInfo fcinfo) {
  ArgumentArray arrays[kArguments];
  read_claim_arrays(fcinfo, arrays, kArguments, kRetries);
  for (int i = 0; i < arrays[kIds].count; i++) {
    check_error(arrays[kErrors].at(i));
    check_delay("retry_in", arrays[kDelays].at(i));
    check_document_if_any("payload", arrays[kPayloads].at(i));
  }
  end_many(fcinfo, arrays, "failed", [&arrays](int i) {
    return failure(arrays[kErrors].at(i), arrays[kRetries].at(i), arrays[kDelays].at(i),
                   arrays[kPayloads].at(i));
  });
}

// --- at a limit, or with a program ---------------------------------------------------------------

// The program of the job has exited, and had no other job.
constexpr char kExitCause[] = "exit";

struct Limit {
  const char* cause;
  // The name in pulse_internal.late(); test/pgtap/late.sql compares both names.
  const char* outcome;
};
constexpr Limit kLimits[] = {{"timeout", "timed_out"},
                             {"stall", "stalled"},
                             {"silence", "interrupted"},
                             {"crash", "lost"},
                             {kExitCause, "failed"}};

const Limit* limit_of(const NullableDatum& cause) {
  for (const Limit& limit : kLimits)
    if (!cause.isnull && text_is(cause.value, limit.cause)) return &limit;
  const char* given = cause.isnull ? "NULL" : TextDatumGetCString(cause.value);
  ereport(ERROR, (errcode(kOutOfRange),
                  errmsg("cause is %s, not timeout, stall, silence, crash or exit", given),
                  errhint("Call fail_many for attempts that failed for another reason.")));
  pg_unreachable();
}

void announce(const ClaimList& list, const Limit& limit) {
  static SavedPlan query = {
      "SELECT pulse_internal.announce_late($1, $2)", 2, {TEXTOID, INT8ARRAYOID}, nullptr};
  auto* ids = static_cast<Datum*>(palloc(sizeof(Datum) * Max(list.count, 1)));
  int count = 0;
  for (int i = 0; i < list.count; i++)
    if (list.claims[i].lock == AttemptLock::kLocked && list.claims[i].outcome == limit.outcome)
      ids[count++] = Int64GetDatum(list.claims[i].job_id);
  if (count == 0) return;
  ArrayType* array = construct_array(ids, count, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
  NullableDatum arguments[] = {{CStringGetTextDatum(limit.cause), false},
                               {PointerGetDatum(array), false}};
  (void)value_of_query(&query, arguments);
}

void fail_late(FunctionCallInfo fcinfo) {
  ArgumentArray arrays[kLateArguments];
  read_claim_arrays(fcinfo, arrays, kLateArguments, kLatePayloads);
  for (int i = 0; i < arrays[kIds].count; i++) {
    check_error(arrays[kErrors].at(i));
    (void)limit_of(arrays[kCauses].at(i));
    check_document_if_any("payload", arrays[kLatePayloads].at(i));
  }
  begin_result_rows(fcinfo);
  ClaimList list = read_claims(arrays[kIds], arrays[kTokens], nullptr);
  for (int i = 0; i < list.count; i++)
    list.claims[i].outcome = limit_of(arrays[kCauses].at(list.claims[i].position))->outcome;
  end_all(&list, [&arrays](int i) {
    Datum outcome = CStringGetTextDatum(limit_of(arrays[kCauses].at(i))->outcome);
    Ending ending = {kind_of_ending(outcome), outcome};
    ending.error = arrays[kErrors].at(i);
    ending.payload = arrays[kLatePayloads].at(i);
    ending.is_lost_if_suspect = text_is(arrays[kCauses].at(i).value, kExitCause);
    if (!ending.is_lost_if_suspect) ending.cause = arrays[kCauses].at(i);
    return ending;
  });
  for (const Limit& limit : kLimits)
    if (limit.cause != kExitCause) announce(list, limit);
  answer_claims(list, arrays[kIds], fcinfo);
}

// --- not started --------------------------------------------------------------------------------

void release(FunctionCallInfo fcinfo) {
  ArgumentArray arrays[kReleaseArguments];
  read_claim_arrays(fcinfo, arrays, kReleaseArguments, kReleaseArguments);
  end_many(fcinfo, arrays, "released", [](int) -> Ending {
    return {Ending::kReleased, CStringGetTextDatum("released")};
  });
}

}  // namespace
}  // namespace pulse

// pulse.fail(job_id, token, error, retry, retry_in, payload).
PULSE_FUNCTION(pulse_fail) {
  pulse::prepare_to_end("fail");
  NullableDatum state = pulse::fail_one(fcinfo->args);
  fcinfo->isnull = state.isnull;
  return state.value;
}

// pulse.fail_many(job_ids, tokens, errors, retry, retry_in, payloads).
PULSE_FUNCTION(pulse_fail_many) {
  pulse::prepare_to_end("fail_many");
  pulse::fail_many(fcinfo);
  return static_cast<Datum>(0);
}

// pulse.fail_late(job_ids, tokens, errors, causes, payloads).
PULSE_FUNCTION(pulse_fail_late) {
  pulse::prepare_to_end("fail_late");
  pulse::fail_late(fcinfo);
  return static_cast<Datum>(0);
}

// pulse.release(job_ids, tokens).
PULSE_FUNCTION(pulse_release) {
  pulse::prepare_to_end("release");
  pulse::release(fcinfo);
  return static_cast<Datum>(0);
}

// pulse.snooze(job_id, token, delay, checkpoint).
PULSE_FUNCTION(pulse_snooze) {
  pulse::prepare_to_end("snooze");
  pulse::snooze_one(fcinfo->args);
  PG_RETURN_VOID();
}
