// Adds jobs: checks each specification and completes it with defaults. sql/add.sql handles keys.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/local_settings.hpp"
#include "job/insert_jobs.hpp"
#include "job/job_table.hpp"
#include "job/task_settings.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

extern "C" {
#include "lib/qunique.h"
}

namespace pulse {
namespace {

// The attributes of type pulse.job_spec.
enum SpecColumn : AttrNumber {
  kSpecIdentifier = 1,
  kSpecPayload,
  kSpecQueueName,
  kSpecRunAt,
  kSpecMaxAttempts,
  kSpecJobKey,
  kSpecPriority,
  kSpecFlags,
  kSpecColumns = kSpecFlags,
};

int compare_text(const void* a, const void* b) {
  return DatumGetInt32(DirectFunctionCall2Coll(
      bttextcmp, C_COLLATION_OID, *static_cast<const Datum*>(a), *static_cast<const Datum*>(b)));
}

// Stores flags as a set: sorted, without duplicates, NULL when empty.
void normalize_flags(RowValue* spec) {
  if (!spec->has(kSpecFlags)) return;
  int count;
  Datum* flags = text_elements(DatumGetArrayTypeP(spec->value(kSpecFlags)), "flags", &count);
  qsort(flags, count, sizeof(Datum), compare_text);
  int kept = static_cast<int>(qunique(flags, count, sizeof(Datum), compare_text));
  ArrayType* set = construct_array(flags, kept, TEXTOID, -1, false, TYPALIGN_INT);
  spec->set(kSpecFlags, NullableDatum{PointerGetDatum(set), kept == 0});
}

void check_names(const RowValue& spec) {
  if (!spec.has(kSpecIdentifier))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("identifier must not be null"),
                    errhint("Name the task.")));
  check_identifier(DatumGetTextPP(spec.value(kSpecIdentifier)));
  if (spec.has(kSpecQueueName)) check_queue_name(DatumGetTextPP(spec.value(kSpecQueueName)));
  if (spec.has(kSpecJobKey))
    check_name("job_key", DatumGetTextPP(spec.value(kSpecJobKey)), kMaxKey);
}

void complete_run_at(RowValue* spec) {
  if (spec->has(kSpecRunAt))
    check_run_at(DatumGetTimestampTz(spec->value(kSpecRunAt)));
  else
    spec->set(kSpecRunAt, TimestampTzGetDatum(transaction_now()));
}

// The previous job's task, which most of the jobs of one call share.
struct LastTask {
  Datum identifier;
  JobDefaults defaults;  // without attempts: no task yet
};

const JobDefaults& defaults_of(const RowValue& spec, LastTask* last) {
  Datum identifier = spec.value(kSpecIdentifier);
  if (last->defaults.max_attempts == 0 || !datum_image_eq(identifier, last->identifier, false, -1))
    *last = {identifier, job_defaults(identifier)};
  return last->defaults;
}

// A job that names no queue has that of its task.
void complete_queue(RowValue* spec, LastTask* last) {
  if (spec->has(kSpecQueueName)) return;
  NullableDatum queue = defaults_of(*spec, last).queue;
  if (queue.isnull) return;
  Oid arguments[] = {TEXTOID, JSONOID};
  Datum name = OidFunctionCall2(internal_function("queue_of_payload", 2, arguments), queue.value,
                                spec->value(kSpecPayload));
  check_queue_name(DatumGetTextPP(name));
  spec->set(kSpecQueueName, name);
}

void complete_numbers(RowValue* spec, LastTask* last) {
  if (!spec->has(kSpecPriority)) spec->set(kSpecPriority, Int32GetDatum(0));
  check_number("priority", DatumGetInt32(spec->value(kSpecPriority)), PG_INT16_MIN, PG_INT16_MAX);
  if (!spec->has(kSpecMaxAttempts))
    spec->set(kSpecMaxAttempts, Int32GetDatum(defaults_of(*spec, last).max_attempts));
  check_number("max_attempts", DatumGetInt32(spec->value(kSpecMaxAttempts)), 1, PG_INT16_MAX);
}

void check_spec(RowValue* spec, LastTask* last) {
  check_names(*spec);
  if (!spec->has(kSpecPayload)) spec->set(kSpecPayload, CStringGetTextDatum("{}"));
  check_document("payload", spec->value(kSpecPayload));
  complete_queue(spec, last);
  complete_run_at(spec);
  complete_numbers(spec, last);
  normalize_flags(spec);
}

TupleDesc spec_shape(HeapTupleHeader spec) {
  return shape_of_type(spec, "pulse.job_spec", kSpecColumns);
}

Oid spec_type() {
  return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("job_spec"),
                         ObjectIdGetDatum(catalog()->schema));
}

// --- storing ------------------------------------------------------------------------------------

struct AddCall {
  NewJobs jobs;
  Oid sequence;
};

void start_adding(AddCall* call) {
  PreventCommandIfReadOnly("add_job");
  open_new_jobs(&call->jobs);
  call->sequence = get_relname_relid("job_id_seq", catalog()->schema);
}

// A transaction that a sweep is to follow requests it.
void set_start_by(RowValue* job, const RowValue& spec, LastTask* last) {
  const JobDefaults& defaults = defaults_of(spec, last);
  if (!defaults.expires) return;
  Datum start_by = DirectFunctionCall2(timestamptz_pl_interval, spec.value(kSpecRunAt),
                                       IntervalPGetDatum(&defaults.expires_after));
  job->set(kJobStartBy, start_by);
  note_sweep(DatumGetTimestampTz(start_by));
}

// What a job has beside its specification: what it waits for, and the due time of its schedule.
struct Origin {
  NullableDatum waits_on;
  NullableDatum starts_when;
  NullableDatum scheduled_for;
  NullableDatum keeps_result;  // true, or NULL
};
constexpr Origin kNoOrigin = {kNull, kNull, kNull, kNull};

HeapTuple form_job(AddCall* call, const RowValue& spec, LastTask* last,
                   const Origin& origin = kNoOrigin) {
  RowValue job;
  memset(job.nulls, true, sizeof(job.nulls));
  Datum now = TimestampTzGetDatum(transaction_now());
  bool is_parked = spec.has(kSpecQueueName) || !origin.waits_on.isnull;
  job.set(kJobId, Int64GetDatum(nextval_internal(call->sequence, false)));
  job.set(kJobIdentifier, spec.field(kSpecIdentifier));
  job.set(kJobPayload, spec.field(kSpecPayload));
  job.set(kJobQueueName, spec.field(kSpecQueueName));
  job.set(kJobPriority, Int16GetDatum(DatumGetInt32(spec.value(kSpecPriority))));
  job.set(kJobRunAt, spec.field(kSpecRunAt));
  job.set(kJobState,
          ObjectIdGetDatum(is_parked ? catalog()->state_parked : catalog()->state_ready));
  job.set(kJobAttempts, Int16GetDatum(0));
  job.set(kJobMaxAttempts, Int16GetDatum(DatumGetInt32(spec.value(kSpecMaxAttempts))));
  job.set(kJobCrashes, Int16GetDatum(0));
  job.set(kJobKey, spec.field(kSpecJobKey));
  job.set(kJobFlags, spec.field(kSpecFlags));
  job.set(kJobRevision, Int32GetDatum(0));
  job.set(kJobCreatedAt, now);
  job.set(kJobUpdatedAt, now);
  job.set(kJobSuperseded, BoolGetDatum(false));
  job.set(kJobInPlace, BoolGetDatum(false));
  job.set(kJobWaitsOn, origin.waits_on);
  job.set(kJobStartsWhen, origin.starts_when);
  job.set(kJobScheduledFor, origin.scheduled_for);
  job.set(kJobKeepsResult, origin.keeps_result);
  if (*settings.traceparent) job.set(kJobTraceparent, CStringGetTextDatum(settings.traceparent));
  set_start_by(&job, spec, last);
  return form_new_job(&call->jobs, &job);
}

// The caller has checked the specification.
Datum add_one(const RowValue& spec, LastTask* last, const Origin& origin = kNoOrigin) {
  AddCall call;
  start_adding(&call);
  Datum stored = store_new_job(&call.jobs, form_job(&call, spec, last, origin));
  close_new_jobs(&call.jobs);
  return stored;
}

[[noreturn]] void refuse_null() {
  ereport(ERROR, (errcode(kOutOfRange), errmsg("a job must not be null"),
                  errhint("Leave it out of the array.")));
  pg_unreachable();
}

// A checked specification has the defaults of what was not given.
void refuse_unchecked(const RowValue& spec) {
  for (SpecColumn column :
       {kSpecIdentifier, kSpecPayload, kSpecRunAt, kSpecMaxAttempts, kSpecPriority})
    if (!spec.has(column))
      ereport(ERROR, (errcode(kOutOfRange), errmsg("the specification of a job is not checked"),
                      errhint("Add the job with pulse.add_job().")));
}

// --- many ---------------------------------------------------------------------------------------

// The approximate size of a batch of rows.
constexpr Size kBatchBytes = 65536;

struct Specs {
  Datum* elements;
  bool* nulls;
  int count;
  TupleDesc shape;
};

Specs read_specs(ArrayType* array) {
  Specs specs = {};
  deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, &specs.elements,
                    &specs.nulls, &specs.count);
  for (int i = 0; i < specs.count; i++)
    if (specs.nulls[i]) refuse_null();
  if (specs.count > 0) specs.shape = spec_shape(DatumGetHeapTupleHeader(specs.elements[0]));
  return specs;
}

bool any_key(const Specs& specs) {
  for (int i = 0; i < specs.count; i++) {
    HeapTupleData tuple = {};
    tuple.t_data = DatumGetHeapTupleHeader(specs.elements[i]);
    if (!heap_attisnull(&tuple, kSpecJobKey, specs.shape)) return true;
  }
  return false;
}

// Adds jobs without keys.
void add_specs(const Specs& specs, AddCall* call, Tuplestorestate* results) {
  LastTask last = {};
  MemoryContext batch =
      AllocSetContextCreate(CurrentMemoryContext, "pg_pulse added jobs", ALLOCSET_DEFAULT_SIZES);
  MemoryContext old = MemoryContextSwitchTo(batch);
  HeapTuple rows[kNewJobsAtOnce];
  int count = 0;
  Size bytes = 0;
  for (int i = 0; i < specs.count; i++) {
    CHECK_FOR_INTERRUPTS();
    RowValue spec;
    read_fields(DatumGetHeapTupleHeader(specs.elements[i]), specs.shape, spec.values, spec.nulls);
    check_spec(&spec, &last);
    rows[count] = form_job(call, spec, &last);
    bytes += rows[count++]->t_len;
    if (count < kNewJobsAtOnce && bytes < kBatchBytes && i + 1 < specs.count) continue;
    store_new_jobs(&call->jobs, rows, count, results);
    MemoryContextReset(batch);
    last = {};
    count = 0;
    bytes = 0;
  }
  MemoryContextSwitchTo(old);
  MemoryContextDelete(batch);
}

// Adds jobs of which some have keys: the SQL function adds each of them singly.
void add_specs_with_keys(Datum specs, bool preserve_run_at, Tuplestorestate* results) {
  Oid types[] = {get_array_type(spec_type()), BOOLOID};
  Datum values[] = {specs, BoolGetDatum(preserve_run_at)};
  SPI_connect();
  without_jit([&] {
    if (SPI_execute_with_args("SELECT * FROM pulse_internal.add_with_keys($1, $2)", 2, types,
                              values, nullptr, false, 0) != SPI_OK_SELECT)
      elog(ERROR, "pulse_internal.add_with_keys() failed");
  });
  for (uint64 i = 0; i < SPI_processed; i++) tuplestore_puttuple(results, SPI_tuptable->vals[i]);
  SPI_finish();
}

// --- one ----------------------------------------------------------------------------------------

const char* mode_named(text* name) {
  const char* mode = text_to_cstring(name);
  if (strcmp(mode, "replace") != 0 && strcmp(mode, "preserve_run_at") != 0 &&
      strcmp(mode, "unsafe_dedupe") != 0)
    ereport(ERROR,
            (errcode(kOutOfRange), errmsg("job_key_mode %s is not known", quote_literal_cstr(mode)),
             errhint("Use replace, preserve_run_at or unsafe_dedupe.")));
  return mode;
}

Datum add_keyed(RowValue* spec, const char* mode) {
  // As a later change locks the table: a weaker lock first would let REINDEX in between.
  LockRelationOid(catalog()->job, RowExclusiveLock);
  Oid arguments[] = {spec_type(), TEXTOID};
  Oid function = internal_function("add_keyed", 2, arguments);
  TupleDesc shape = lookup_rowtype_tupdesc(arguments[0], -1);
  HeapTuple checked = heap_form_tuple(shape, spec->values, spec->nulls);
  ReleaseTupleDesc(shape);
  return OidFunctionCall2(function, HeapTupleGetDatum(checked), CStringGetTextDatum(mode));
}

}  // namespace
}  // namespace pulse

// pulse_internal.checked_spec(spec)
PULSE_FUNCTION(pulse_checked_spec) {
  if (PG_ARGISNULL(0)) pulse::refuse_null();
  HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(0);
  pulse::RowValue spec;
  TupleDesc shape = pulse::spec_shape(header);
  pulse::read_fields(header, shape, spec.values, spec.nulls);
  pulse::LastTask last = {};
  pulse::check_spec(&spec, &last);
  HeapTuple checked = heap_form_tuple(shape, spec.values, spec.nulls);
  ReleaseTupleDesc(shape);
  PG_RETURN_DATUM(HeapTupleGetDatum(checked));
}

// pulse_internal.insert_job(spec [, waits_on, starts_when, keeps_result | , scheduled_for]): the
// caller has checked the job.
PULSE_FUNCTION(pulse_insert_job) {
  if (PG_ARGISNULL(0)) pulse::refuse_null();
  pulse::RowValue spec;
  pulse::read_row_value(&spec, PG_GETARG_HEAPTUPLEHEADER(0), "job_spec");
  pulse::refuse_unchecked(spec);
  pulse::LastTask last = {};
  pulse::Origin origin = pulse::kNoOrigin;
  if (PG_NARGS() == 2) origin.scheduled_for = fcinfo->args[1];
  if (PG_NARGS() == 4) origin = {fcinfo->args[1], fcinfo->args[2], pulse::kNull, fcinfo->args[3]};
  PG_RETURN_DATUM(pulse::add_one(spec, &last, origin));
}

// pulse_internal.checked_key_mode(job_key_mode)
PULSE_FUNCTION(pulse_checked_key_mode) {
  (void)pulse::mode_named(PG_GETARG_TEXT_PP(0));
  PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

// pulse.add_job(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags,
// job_key_mode): the arguments are the columns of a specification and the mode of its key.
PULSE_FUNCTION(pulse_add_job) {
  pulse::RowValue spec;
  for (int i = 0; i < pulse::kSpecColumns; i++) spec.set(i + 1, fcinfo->args[i]);
  const char* mode = PG_ARGISNULL(pulse::kSpecColumns)
                         ? "replace"
                         : pulse::mode_named(PG_GETARG_TEXT_PP(pulse::kSpecColumns));
  pulse::LastTask last = {};
  pulse::check_spec(&spec, &last);
  PG_RETURN_DATUM(spec.has(pulse::kSpecJobKey) ? pulse::add_keyed(&spec, mode)
                                               : pulse::add_one(spec, &last));
}

// pulse.add_jobs(specs, job_key_preserve_run_at)
PULSE_FUNCTION(pulse_add_jobs) {
  pulse::AddCall call;
  // The lock on the table comes first: no session can change the columns of the results after it.
  pulse::start_adding(&call);
  pulse::begin_result_rows(fcinfo);
  Tuplestorestate* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)->setResult;
  if (!PG_ARGISNULL(0)) {
    pulse::Specs specs = pulse::read_specs(PG_GETARG_ARRAYTYPE_P(0));
    if (pulse::any_key(specs))
      pulse::add_specs_with_keys(PG_GETARG_DATUM(0), !PG_ARGISNULL(1) && PG_GETARG_BOOL(1),
                                 results);
    else
      pulse::add_specs(specs, &call, results);
    if (specs.shape) ReleaseTupleDesc(specs.shape);
  }
  pulse::close_new_jobs(&call.jobs);
  return static_cast<Datum>(0);
}
