// Adding: adds one job, many jobs, and the jobs of a flow. sql/job/add.sql handles keys.
#include "access/catalog.hpp"
#include "access/local_settings.hpp"
#include "job/new_job.hpp"
#include "job/producer.hpp"
#include "server/call_checks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/owner_call.hpp"
#include "server/postgres.hpp"

namespace pulse {
namespace {

Oid spec_type() {
  return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("job_spec"),
                         ObjectIdGetDatum(catalog()->schema));
}

// The caller has checked the specification.
Datum add_one(const RowValue& spec, LastTask* last, const Origin& origin) {
  NewJobs jobs;
  start_adding(&jobs);
  Datum stored = store_new_job(&jobs, form_job(&jobs, spec, last, origin));
  close_new_jobs(&jobs);
  return stored;
}

[[noreturn]] void refuse_null() {
  ereport(ERROR, (errcode(kOutOfRange), errmsg("a job must not be null"),
                  errhint("Leave it out of the array.")));
  pg_unreachable();
}

// A checked specification has defaults in all these columns.
void refuse_unchecked(const RowValue& spec) {
  for (SpecColumn column :
       {kSpecIdentifier, kSpecPayload, kSpecRunAt, kSpecMaxAttempts, kSpecPriority})
    if (!spec.has(column))
      ereport(ERROR, (errcode(kOutOfRange), errmsg("the specification of a job is not checked"),
                      errhint("Add the job with pulse.add_job().")));
}

// The first argument, a specification that the caller has checked.
RowValue checked_argument(FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(0)) refuse_null();
  RowValue spec;
  read_row_value(&spec, pulse::header_of(PG_GETARG_DATUM(0)), "job_spec");
  refuse_unchecked(spec);
  return spec;
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
  if (specs.count > 0) specs.shape = spec_shape(header_of(specs.elements[0]));
  return specs;
}

bool any_key(const Specs& specs) {
  for (int i = 0; i < specs.count; i++) {
    HeapTupleData tuple = {};
    tuple.t_data = header_of(specs.elements[i]);
    if (!heap_attisnull(&tuple, kSpecJobKey, specs.shape)) return true;
  }
  return false;
}

RowValue spec_at(const Specs& specs, int i) {
  RowValue spec;
  read_fields(header_of(specs.elements[i]), specs.shape, spec.values, spec.nulls);
  return spec;
}

// Rows that are stored together. `memory` has the rows, and the last task.
struct Batch {
  NewJobs* jobs;
  Tuplestorestate* results;  // NULL: the caller wants no rows back
  MemoryContext memory;
  HeapTuple rows[kNewJobsAtOnce];
  int count;
  Size bytes;
  LastTask last;
};

// Begins a batch, and switches to `memory`, in which the caller forms the rows. Returns the context
// that the caller passes to end_batch().
MemoryContext begin_batch(Batch* batch, NewJobs* jobs, Tuplestorestate* results) {
  batch->jobs = jobs;
  batch->results = results;
  batch->memory =
      AllocSetContextCreate(CurrentMemoryContext, "pg_pulse added jobs", ALLOCSET_DEFAULT_SIZES);
  batch->count = 0;
  batch->bytes = 0;
  batch->last = {};
  return MemoryContextSwitchTo(batch->memory);
}

void store_batch(Batch* batch) {
  if (batch->count > 0) store_new_jobs(batch->jobs, batch->rows, batch->count, batch->results);
  MemoryContextReset(batch->memory);
  batch->count = 0;
  batch->bytes = 0;
  batch->last = {};
}

void add_to_batch(Batch* batch, const RowValue& spec, const Origin& origin) {
  CHECK_FOR_INTERRUPTS();
  HeapTuple row = form_job(batch->jobs, spec, &batch->last, origin);
  batch->rows[batch->count++] = row;
  batch->bytes += row->t_len;
  if (batch->count == kNewJobsAtOnce || batch->bytes >= kBatchBytes) store_batch(batch);
}

void end_batch(Batch* batch, MemoryContext old) {
  store_batch(batch);
  MemoryContextSwitchTo(old);
  MemoryContextDelete(batch->memory);
}

// Adds jobs without keys.
void add_specs(const Specs& specs, NewJobs* jobs, Tuplestorestate* results) {
  Batch batch;
  Origin origin = plain_origin(asking_producer());
  MemoryContext old = begin_batch(&batch, jobs, results);
  for (int i = 0; i < specs.count; i++) {
    RowValue spec = spec_at(specs, i);
    check_spec(&spec, &batch.last);
    add_to_batch(&batch, spec, origin);
  }
  end_batch(&batch, old);
}

// An argument that is an array, with one element for each specification.
struct Elements {
  Datum* values;
  bool* nulls;

  NullableDatum at(int i) const { return {values[i], nulls[i]}; }
};

Elements elements_of(FunctionCallInfo fcinfo, int argument, const Specs& specs) {
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(argument);
  int16 length;
  bool by_value;
  char align;
  get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
  Elements elements;
  int count;
  deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &elements.values,
                    &elements.nulls, &count);
  if (count != specs.count) elog(ERROR, "array %d has not one element for each job", argument);
  return elements;
}

// Adds jobs of which some have keys: the SQL function adds each job singly.
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

// Returns the mode under one name: dedupe is unsafe_dedupe.
const char* mode_named(text* name) {
  const char* mode = text_to_cstring(name);
  if (strcmp(mode, "dedupe") == 0) return "unsafe_dedupe";
  if (strcmp(mode, "replace") != 0 && strcmp(mode, "preserve_run_at") != 0 &&
      strcmp(mode, "unsafe_dedupe") != 0)
    ereport(ERROR,
            (errcode(kOutOfRange), errmsg("job_key_mode %s is not known", quote_literal_cstr(mode)),
             errhint("Use replace, preserve_run_at or dedupe.")));
  return mode;
}

Datum add_keyed(RowValue* spec, const char* mode) {
  // Locks the table in the mode of a later change: with a weaker lock first, REINDEX could come in
  // between.
  LockRelationOid(catalog()->job, RowExclusiveLock);
  constexpr int kAll = 4;
  Oid types[kAll] = {spec_type(), TEXTOID, INT8OID, TEXTOID};
  int count = catalog()->has_index_lanes ? kAll : 2;  // 0.1.0 has neither the id nor the producer
  FmgrInfo function;
  fmgr_info(internal_function("add_keyed", count, types), &function);
  TupleDesc shape = lookup_rowtype_tupdesc(types[0], -1);
  HeapTuple checked = heap_form_tuple(shape, spec->values, spec->nulls);
  ReleaseTupleDesc(shape);
  LOCAL_FCINFO(call, kAll);
  InitFunctionCallInfoData(*call, &function, static_cast<short>(count), InvalidOid, nullptr,
                           nullptr);
  call->args[0] = {HeapTupleGetDatum(checked), false};
  call->args[1] = {CStringGetTextDatum(mode), false};
  call->args[2] = kNull;
  call->args[3] = asking_producer();
  return FunctionCallInvoke(call);
}

void add_many(FunctionCallInfo fcinfo) {
  NewJobs jobs;
  // The lock on the table comes first, so no session can change the columns of the results later.
  start_adding(&jobs);
  begin_result_rows(fcinfo);
  Tuplestorestate* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)->setResult;
  if (!PG_ARGISNULL(0)) {
    Specs specs = read_specs(PG_GETARG_ARRAYTYPE_P(0));
    if (any_key(specs))
      add_specs_with_keys(PG_GETARG_DATUM(0), !PG_ARGISNULL(1) && PG_GETARG_BOOL(1), results);
    else
      add_specs(specs, &jobs, results);
    if (specs.shape) ReleaseTupleDesc(specs.shape);
  }
  close_new_jobs(&jobs);
}

}  // namespace
}  // namespace pulse

// pulse_internal.checked_spec(spec)
PULSE_FUNCTION(pulse_checked_spec) {
  if (PG_ARGISNULL(0)) pulse::refuse_null();
  HeapTupleHeader header = pulse::header_of(PG_GETARG_DATUM(0));
  pulse::RowValue spec;
  TupleDesc shape = pulse::spec_shape(header);
  pulse::read_fields(header, shape, spec.values, spec.nulls);
  pulse::LastTask last = {};
  pulse::check_spec(&spec, &last);
  HeapTuple checked = heap_form_tuple(shape, spec.values, spec.nulls);
  ReleaseTupleDesc(shape);
  PG_RETURN_DATUM(HeapTupleGetDatum(checked));
}

// pulse_internal.insert_job(spec [, waits_on, starts_when]): the caller has checked the job.
PULSE_FUNCTION(pulse_insert_job) {
  pulse::RowValue spec = pulse::checked_argument(fcinfo);
  pulse::LastTask last = {};
  pulse::Origin origin = pulse::plain_origin(pulse::asking_producer());
  if (PG_NARGS() == 3) {
    origin.waits_on = fcinfo->args[1];
    origin.starts_when = fcinfo->args[2];
  }
  PG_RETURN_DATUM(pulse::add_one(spec, &last, origin));
}

// pulse_internal.insert_scheduled_job(spec, scheduled_for, added_by)
PULSE_FUNCTION(pulse_insert_scheduled_job) {
  pulse::RowValue spec = pulse::checked_argument(fcinfo);
  pulse::LastTask last = {};
  pulse::Origin origin = pulse::plain_origin(fcinfo->args[2]);
  origin.scheduled_for = fcinfo->args[1];
  PG_RETURN_DATUM(pulse::add_one(spec, &last, origin));
}

// pulse_internal.insert_jobs(specs, ids, waits_on, starts_when, start_by, keeps_result): adds the
// jobs without keys, which the caller has checked.
PULSE_FUNCTION(pulse_insert_jobs) {
  pulse::NewJobs jobs;
  pulse::start_adding(&jobs);
  pulse::Specs specs = pulse::read_specs(PG_GETARG_ARRAYTYPE_P(0));
  pulse::Elements ids = pulse::elements_of(fcinfo, 1, specs);
  pulse::Elements waits_on = pulse::elements_of(fcinfo, 2, specs);
  pulse::Elements starts_when = pulse::elements_of(fcinfo, 3, specs);
  pulse::Elements start_by = pulse::elements_of(fcinfo, 4, specs);
  pulse::Elements keeps_result = pulse::elements_of(fcinfo, 5, specs);
  NullableDatum added_by = pulse::asking_producer();
  pulse::Batch batch;
  MemoryContext old = pulse::begin_batch(&batch, &jobs, nullptr);
  for (int i = 0; i < specs.count; i++) {
    pulse::RowValue spec = pulse::spec_at(specs, i);
    if (spec.has(pulse::kSpecJobKey)) continue;
    pulse::refuse_unchecked(spec);
    bool waits = !waits_on.nulls[i];
    pulse::add_to_batch(&batch, spec,
                        {waits_on.at(i), waits ? starts_when.at(i) : pulse::kNull, pulse::kNull,
                         keeps_result.at(i), start_by.at(i), ids.at(i), added_by, pulse::kNull});
  }
  pulse::end_batch(&batch, old);
  ReleaseTupleDesc(specs.shape);
  pulse::close_new_jobs(&jobs);
  PG_RETURN_VOID();
}

// pulse_internal.insert_job_as(spec, id, added_by): as insert_job(), under this id, or for NULL
// under the next id.
PULSE_FUNCTION(pulse_insert_job_as) {
  pulse::RowValue spec = pulse::checked_argument(fcinfo);
  pulse::LastTask last = {};
  pulse::Origin origin = pulse::plain_origin(fcinfo->args[2]);
  origin.id = fcinfo->args[1];
  PG_RETURN_DATUM(pulse::add_one(spec, &last, origin));
}

// pulse_internal.insert_dead_letter(spec, dead_letter_of, added_by)
PULSE_FUNCTION(pulse_insert_dead_letter) {
  pulse::RowValue spec = pulse::checked_argument(fcinfo);
  pulse::LastTask last = {};
  pulse::Origin origin = pulse::plain_origin(fcinfo->args[2]);
  origin.dead_letter_of = fcinfo->args[1];
  PG_RETURN_DATUM(pulse::add_one(spec, &last, origin));
}

// pulse_internal.checked_key_mode(job_key_mode)
PULSE_FUNCTION(pulse_checked_key_mode) {
  PG_RETURN_DATUM(CStringGetTextDatum(pulse::mode_named(PG_GETARG_TEXT_PP(0))));
}

// pulse.add_job(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags,
// job_key_mode): the arguments are the columns of a specification and the mode of the key.
PULSE_FUNCTION(pulse_add_job) {
  return pulse::as_owner(fcinfo, [fcinfo] {
    pulse::RowValue spec;
    for (int i = 0; i < pulse::kSpecColumns; i++) spec.set(i + 1, fcinfo->args[i]);
    const char* mode = PG_ARGISNULL(pulse::kSpecColumns)
                           ? "replace"
                           : pulse::mode_named(PG_GETARG_TEXT_PP(pulse::kSpecColumns));
    pulse::LastTask last = {};
    pulse::check_spec(&spec, &last);
    return spec.has(pulse::kSpecJobKey)
               ? pulse::add_keyed(&spec, mode)
               : pulse::add_one(spec, &last, pulse::plain_origin(pulse::asking_producer()));
  });
}

// pulse.add_jobs(specs, job_key_preserve_run_at)
PULSE_FUNCTION(pulse_add_jobs) {
  return pulse::as_owner(fcinfo, [fcinfo] {
    pulse::add_many(fcinfo);
    return static_cast<Datum>(0);
  });
}
