// Adding: a job once in a period. The first add under a key is decided here, all others by
// pulse_internal.take_once() in sql/job/add_once.sql.
#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "access/local_settings.hpp"
#include "access/saved_plan.hpp"
#include "job/ids.hpp"
#include "job/new_job.hpp"
#include "job/producer.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/owner_call.hpp"
#include "server/postgres.hpp"

namespace pulse {
namespace {

enum Argument { kUniqueFor, kUniqueKey, kFirstOfSpec, kStates = kFirstOfSpec + kSpecColumns - 1 };

// What an add asks for: the columns of pulse.remembered_key without the job, and the states in
// which an earlier job counts.
struct Request {
  NullableDatum identifier;
  NullableDatum unique_key;
  NullableDatum unique_until;
  NullableDatum states;
  NullableDatum added_by;
};

struct Answer {
  NullableDatum id;
  NullableDatum is_new;
  NullableDatum state;
};

void check_given(FunctionCallInfo fcinfo, Argument argument, const char* name) {
  if (PG_ARGISNULL(argument))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s must not be null", name),
                    errhint("Give a period and a key. add_job() adds a job in any case.")));
}

// A month counts as 30 days, a day as 24 hours.
int64 checked_period(FunctionCallInfo fcinfo) {
  check_given(fcinfo, kUniqueFor, "unique_for");
  Interval lowest = {};
  lowest.time = 1000;
  check_duration("unique_for", PG_GETARG_DATUM(kUniqueFor), IntervalPGetDatum(&lowest));
  const Interval* period = PG_GETARG_INTERVAL_P(kUniqueFor);
  return period->time +
         (static_cast<int64>(period->month) * DAYS_PER_MONTH + period->day) * USECS_PER_DAY;
}

bool is_state(Datum name) {
  for (const char* state :
       {"waiting", "running", "completed", "failed", "cancelled", "quarantined", "expired"})
    if (text_is(name, state)) return true;
  return false;
}

void check_states(ArrayType* states) {
  int count;
  Datum* names = text_elements(states, "states", &count);
  bool is_known = count > 0;
  for (int i = 0; i < count; i++) is_known = is_known && is_state(names[i]);
  if (!is_known)
    ereport(ERROR, (errcode(kOutOfRange),
                    errmsg("states %s are not known",
                           OidOutputFunctionCall(F_ARRAY_OUT, PointerGetDatum(states))),
                    errhint("Name at least one of waiting, running, completed, failed, cancelled, "
                            "quarantined and expired. NULL means all.")));
}

// The arguments are the columns of a specification without the key.
RowValue spec_of_call(FunctionCallInfo fcinfo) {
  RowValue spec;
  const NullableDatum* argument = &fcinfo->args[kFirstOfSpec];
  for (int column = 1; column <= kSpecColumns; column++)
    spec.set(column, column == kSpecJobKey ? kNull : *argument++);
  return spec;
}

Request checked_request(FunctionCallInfo fcinfo, const RowValue& spec) {
  int64 period = checked_period(fcinfo);
  check_given(fcinfo, kUniqueKey, "unique_key");
  check_name("unique_key", PG_GETARG_TEXT_PP(kUniqueKey), kMaxKey);
  if (!PG_ARGISNULL(kStates)) check_states(PG_GETARG_ARRAYTYPE_P(kStates));
  return {spec.field(kSpecIdentifier), fcinfo->args[kUniqueKey],
          given(TimestampTzGetDatum(transaction_now() + period)), fcinfo->args[kStates],
          asking_producer()};
}

// Takes the lock of the insert first, so that REINDEX does not come in between.
bool is_remembered(const Request& request) {
  Snapshot snapshot =
      RegisterSnapshot(IsolationUsesXactSnapshot() ? GetActiveSnapshot() : GetLatestSnapshot());
  Relation table = table_open(catalog()->remembered_key, RowExclusiveLock);
  IndexLookup keys;
  open_index_lookup(&keys, table, catalog()->remembered_key_key, snapshot);
  ScanKeyData both[kIdKeys];
  init_text_key(&both[0], kRememberedUniqueKey, BTEqualStrategyNumber, F_TEXTEQ,
                request.unique_key.value);
  init_text_key(&both[1], kRememberedIdentifier, BTEqualStrategyNumber, F_TEXTEQ,
                request.identifier.value);
  seek_keys(&keys, both);
  bool found = next_row(&keys);
  close_index_lookup(&keys);
  table_close(table, NoLock);
  UnregisterSnapshot(snapshot);
  return found;
}

// Returns the id that the job is to have; NULL where another session took the key meanwhile. Waits
// for the end of a transaction that takes the key.
NullableDatum remember(const Request& request) {
  static SavedPlan query = {
      "INSERT INTO pulse.remembered_key AS r"
      " (identifier, unique_key, job_id, unique_until, added_by) VALUES ($1, $2, $3, $4, $5)"
      " ON CONFLICT DO NOTHING RETURNING r.job_id",
      5,
      {TEXTOID, TEXTOID, INT8OID, TIMESTAMPTZOID, TEXTOID},
      nullptr};
  const NullableDatum row[] = {request.identifier, request.unique_key,
                               given(Int64GetDatum(next_id(catalog()->job_id_seq))),
                               request.unique_until, request.added_by};
  return value_of_query(&query, row);
}

Answer take_once(const Request& request) {
  Oid types[] = {TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTARRAYOID, TEXTOID};
  constexpr int kArguments = lengthof(types);
  FmgrInfo function;
  fmgr_info(internal_function("take_once", kArguments, types), &function);
  LOCAL_FCINFO(call, kArguments);
  InitFunctionCallInfoData(*call, &function, kArguments, InvalidOid, nullptr, nullptr);
  const NullableDatum arguments[] = {request.identifier, request.unique_key, request.unique_until,
                                     request.states, request.added_by};
  memcpy(call->args, arguments, sizeof(arguments));
  HeapTupleHeader row = header_of(FunctionCallInvoke(call));
  TupleDesc shape = shape_of(row);
  Datum values[3];
  bool nulls[3];
  read_fields(row, shape, values, nulls);
  ReleaseTupleDesc(shape);
  return {given(values[0]), given(values[1]), given(values[2])};
}

Answer take(const Request& request) {
  if (!is_remembered(request)) {
    NullableDatum id = remember(request);
    if (!id.isnull) return {id, given(BoolGetDatum(true)), given(CStringGetTextDatum("waiting"))};
  }
  return take_once(request);
}

void add_as(const NullableDatum& id, const RowValue& spec, LastTask* last,
            const NullableDatum& added_by) {
  Origin origin = plain_origin(added_by);
  origin.id = id;
  NewJobs jobs;
  start_adding(&jobs);
  (void)store_new_job(&jobs, form_job(&jobs, spec, last, origin));
  close_new_jobs(&jobs);
}

}  // namespace
}  // namespace pulse

// pulse.add_job_once(unique_for, unique_key, identifier, payload, queue_name, run_at, max_attempts,
// priority, flags, states)
PULSE_FUNCTION(pulse_add_job_once) {
  return pulse::as_owner(fcinfo, [fcinfo] {
    pulse::RowValue spec = pulse::spec_of_call(fcinfo);
    pulse::LastTask last = {};
    pulse::check_spec(&spec, &last);
    pulse::Request request = pulse::checked_request(fcinfo, spec);
    PreventCommandIfReadOnly("add_job_once");
    // The lock of the add comes first, because take_once() reads the table of jobs.
    LockRelationOid(pulse::catalog()->job, RowExclusiveLock);
    pulse::Answer answer = pulse::take(request);
    if (DatumGetBool(answer.is_new.value)) pulse::add_as(answer.id, spec, &last, request.added_by);
    return pulse::result_row(fcinfo, {answer.id, answer.is_new, answer.state});
  });
}
