// Adds jobs: checks each specification and completes it with defaults. sql/add.sql handles keys.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/insert_jobs.hpp"
#include "job/job_table.hpp"
#include "job/task_settings.hpp"
#include "server/argument_checks.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

extern "C" {
#include "parser/parse_func.h"
}

namespace pulse {
namespace {

enum SpecColumn {
  kSpecIdentifier,
  kSpecPayload,
  kSpecQueueName,
  kSpecRunAt,
  kSpecMaxAttempts,
  kSpecJobKey,
  kSpecPriority,
  kSpecFlags,
  kSpecColumns,
};

struct Spec {
  Datum values[kSpecColumns];
  bool nulls[kSpecColumns];

  void set(int column, Datum value) {
    values[column] = value;
    nulls[column] = false;
  }
};

int compare_text(const void* a, const void* b) {
  text* left = DatumGetTextPP(*static_cast<const Datum*>(a));
  text* right = DatumGetTextPP(*static_cast<const Datum*>(b));
  int left_size = VARSIZE_ANY_EXHDR(left);
  int right_size = VARSIZE_ANY_EXHDR(right);
  int order = memcmp(VARDATA_ANY(left), VARDATA_ANY(right), Min(left_size, right_size));
  return order ? order : left_size - right_size;
}

// Stores flags as a set: sorted, without duplicates, NULL when empty.
void normalize_flags(Spec* spec) {
  if (spec->nulls[kSpecFlags]) return;
  ArrayType* flags = DatumGetArrayTypeP(spec->values[kSpecFlags]);
  if (ARR_NDIM(flags) > 1 || array_contains_nulls(flags))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("flags must be a flat array without nulls"),
                    errhint("Use for example ARRAY['slow'].")));
  Datum* elements;
  int count;
  deconstruct_array(flags, TEXTOID, -1, false, TYPALIGN_INT, &elements, nullptr, &count);
  qsort(elements, count, sizeof(Datum), compare_text);
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (kept == 0 || compare_text(&elements[i], &elements[kept - 1]) != 0)
      elements[kept++] = elements[i];
  spec->nulls[kSpecFlags] = kept == 0;
  if (kept)
    spec->values[kSpecFlags] =
        PointerGetDatum(construct_array(elements, kept, TEXTOID, -1, false, TYPALIGN_INT));
}

void check_names(const Spec& spec) {
  if (spec.nulls[kSpecIdentifier])
    ereport(ERROR, (errcode(kOutOfRange), errmsg("identifier must not be null"),
                    errhint("Name the task.")));
  check_identifier(DatumGetTextPP(spec.values[kSpecIdentifier]));
  if (!spec.nulls[kSpecQueueName])
    check_name("queue_name", DatumGetTextPP(spec.values[kSpecQueueName]), kMaxName);
  if (!spec.nulls[kSpecJobKey])
    check_name("job_key", DatumGetTextPP(spec.values[kSpecJobKey]), kMaxKey);
}

void complete_run_at(Spec* spec) {
  if (spec->nulls[kSpecRunAt])
    spec->set(kSpecRunAt, TimestampTzGetDatum(transaction_now()));
  else if (TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(spec->values[kSpecRunAt])))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("run_at is infinite, which is no time"),
                    errhint("Give a moment, or leave it out for now.")));
}

// The settings of the previous job's task: the jobs of one call mostly have the same task.
struct LastTask {
  MemoryContext context;  // of the name
  text* identifier;
  int max_attempts;
};

int max_attempts_of(Datum identifier, LastTask* last) {
  text* name = DatumGetTextPP(identifier);
  if (last && last->identifier && VARSIZE_ANY_EXHDR(name) == VARSIZE_ANY_EXHDR(last->identifier) &&
      memcmp(VARDATA_ANY(name), VARDATA_ANY(last->identifier), VARSIZE_ANY_EXHDR(name)) == 0)
    return last->max_attempts;
  int max_attempts = task_max_attempts(identifier);
  if (!last) return max_attempts;
  if (last->identifier) pfree(last->identifier);
  MemoryContext old = MemoryContextSwitchTo(last->context);
  last->identifier = DatumGetTextPCopy(identifier);
  last->max_attempts = max_attempts;
  MemoryContextSwitchTo(old);
  return max_attempts;
}

void complete_numbers(Spec* spec, LastTask* last) {
  if (spec->nulls[kSpecPriority]) spec->set(kSpecPriority, Int32GetDatum(0));
  check_number("priority", DatumGetInt32(spec->values[kSpecPriority]), PG_INT16_MIN, PG_INT16_MAX);
  if (spec->nulls[kSpecMaxAttempts])
    spec->set(kSpecMaxAttempts,
              Int32GetDatum(max_attempts_of(spec->values[kSpecIdentifier], last)));
  check_number("max_attempts", DatumGetInt32(spec->values[kSpecMaxAttempts]), 1, PG_INT16_MAX);
}

void read_spec(Spec* spec, HeapTupleHeader header, TupleDesc descriptor) {
  if (descriptor->natts != kSpecColumns)
    ereport(
        ERROR,
        (errcode(ERRCODE_DATATYPE_MISMATCH),
         errmsg("type pulse.job_spec has %d attributes, not %d", descriptor->natts, kSpecColumns),
         errhint(
             "The type was altered. Run ALTER EXTENSION pg_pulse UPDATE, or undo the change.")));
  read_fields(header, descriptor, spec->values, spec->nulls);
}

void check_spec(Spec* spec, LastTask* last) {
  check_names(*spec);
  if (spec->nulls[kSpecPayload]) spec->set(kSpecPayload, CStringGetTextDatum("{}"));
  check_document("payload", spec->values[kSpecPayload]);
  complete_run_at(spec);
  complete_numbers(spec, last);
  normalize_flags(spec);
}

Oid spec_type() {
  return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("job_spec"),
                         ObjectIdGetDatum(catalog()->schema));
}

// --- storing ------------------------------------------------------------------------------------

struct AddCall {
  NewJobs jobs;
  Oid sequence;
  Datum now;
};

void start_adding(AddCall* call) {
  PreventCommandIfReadOnly("add_job");
  open_new_jobs(&call->jobs);
  call->sequence = get_relname_relid("job_id_seq", catalog()->schema);
  call->now = TimestampTzGetDatum(transaction_now());
}

HeapTuple form_job(AddCall* call, const Spec& spec) {
  Datum values[kMaxColumns];
  bool nulls[kMaxColumns];
  memset(nulls, true, sizeof(nulls));
  auto put = [&](int column, Datum value, bool is_null = false) {
    values[column - 1] = value;
    nulls[column - 1] = is_null;
  };
  auto put_spec = [&](int column, SpecColumn from) {
    put(column, spec.values[from], spec.nulls[from]);
  };
  bool is_parked = !spec.nulls[kSpecQueueName];
  put(kJobId, Int64GetDatum(nextval_internal(call->sequence, false)));
  put_spec(kJobIdentifier, kSpecIdentifier);
  put_spec(kJobPayload, kSpecPayload);
  put_spec(kJobQueueName, kSpecQueueName);
  put(kJobPriority, Int16GetDatum(DatumGetInt32(spec.values[kSpecPriority])));
  put_spec(kJobRunAt, kSpecRunAt);
  put(kJobState, ObjectIdGetDatum(is_parked ? catalog()->state_parked : catalog()->state_ready));
  put(kJobAttempts, Int16GetDatum(0));
  put(kJobMaxAttempts, Int16GetDatum(DatumGetInt32(spec.values[kSpecMaxAttempts])));
  put(kJobCrashes, Int16GetDatum(0));
  put_spec(kJobKey, kSpecJobKey);
  put_spec(kJobFlags, kSpecFlags);
  put(kJobRevision, Int32GetDatum(0));
  put(kJobCreatedAt, call->now);
  put(kJobUpdatedAt, call->now);
  put(kJobSuperseded, BoolGetDatum(false));
  put(kJobInPlace, BoolGetDatum(false));
  note_job(DatumGetTextPP(spec.values[kSpecIdentifier]),
           is_parked ? DatumGetTextPP(spec.values[kSpecQueueName]) : nullptr,
           DatumGetTimestampTz(spec.values[kSpecRunAt]));
  return form_new_job(&call->jobs, values, nulls);
}

// The caller has checked the specification.
Datum add_one(const Spec& spec) {
  AddCall call;
  start_adding(&call);
  Datum stored = store_new_job(&call.jobs, form_job(&call, spec));
  close_new_jobs(&call.jobs);
  return stored;
}

[[noreturn]] void refuse_null() {
  ereport(ERROR, (errcode(kOutOfRange), errmsg("a job must not be null"),
                  errhint("Leave it out of the array.")));
  pg_unreachable();
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
  if (specs.count > 0) specs.shape = shape_of(DatumGetHeapTupleHeader(specs.elements[0]));
  return specs;
}

bool any_key(const Specs& specs) {
  for (int i = 0; i < specs.count; i++) {
    HeapTupleData tuple = {};
    tuple.t_data = DatumGetHeapTupleHeader(specs.elements[i]);
    if (!heap_attisnull(&tuple, kSpecJobKey + 1, specs.shape)) return true;
  }
  return false;
}

// Adds jobs without keys.
void add_specs(const Specs& specs, AddCall* call, Tuplestorestate* results) {
  LastTask last = {CurrentMemoryContext, nullptr, 0};
  MemoryContext batch =
      AllocSetContextCreate(CurrentMemoryContext, "pg_pulse added jobs", ALLOCSET_DEFAULT_SIZES);
  MemoryContext old = MemoryContextSwitchTo(batch);
  HeapTuple rows[kNewJobsAtOnce];
  int count = 0;
  Size bytes = 0;
  for (int i = 0; i < specs.count; i++) {
    CHECK_FOR_INTERRUPTS();
    Spec spec;
    read_spec(&spec, DatumGetHeapTupleHeader(specs.elements[i]), specs.shape);
    check_spec(&spec, &last);
    rows[count] = form_job(call, spec);
    bytes += rows[count++]->t_len;
    if (count < kNewJobsAtOnce && bytes < kBatchBytes && i + 1 < specs.count) continue;
    store_new_jobs(&call->jobs, rows, count, results);
    MemoryContextReset(batch);
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
  if (SPI_execute_with_args("SELECT * FROM pulse._add_with_keys($1, $2)", 2, types, values, nullptr,
                            false, 0) != SPI_OK_SELECT)
    elog(ERROR, "pulse._add_with_keys() failed");
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

Datum add_keyed(Spec* spec, const char* mode) {
  Oid arguments[] = {spec_type(), TEXTOID};
  Oid function =
      LookupFuncName(list_make2(makeString(pstrdup("pulse")), makeString(pstrdup("_add_keyed"))), 2,
                     arguments, false);
  TupleDesc shape = lookup_rowtype_tupdesc(arguments[0], -1);
  HeapTuple checked = heap_form_tuple(shape, spec->values, spec->nulls);
  ReleaseTupleDesc(shape);
  return OidFunctionCall2(function, HeapTupleGetDatum(checked), CStringGetTextDatum(mode));
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_checked_spec) {
  if (PG_ARGISNULL(0)) pulse::refuse_null();
  HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(0);
  pulse::Spec spec;
  TupleDesc shape = pulse::shape_of(header);
  pulse::read_spec(&spec, header, shape);
  pulse::check_spec(&spec, nullptr);
  HeapTuple checked = heap_form_tuple(shape, spec.values, spec.nulls);
  ReleaseTupleDesc(shape);
  PG_RETURN_DATUM(HeapTupleGetDatum(checked));
}

// pulse._insert_job(spec): the caller has checked the job.
PULSE_FUNCTION(pulse_insert_job) {
  HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(0);
  pulse::Spec spec;
  TupleDesc shape = pulse::shape_of(header);
  pulse::read_spec(&spec, header, shape);
  ReleaseTupleDesc(shape);
  PG_RETURN_DATUM(pulse::add_one(spec));
}

// pulse.add_job(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags,
// job_key_mode): the arguments are the columns of a specification and the mode of its key.
PULSE_FUNCTION(pulse_add_job) {
  pulse::Spec spec;
  for (int i = 0; i < pulse::kSpecColumns; i++) {
    spec.values[i] = PG_GETARG_DATUM(i);
    spec.nulls[i] = PG_ARGISNULL(i);
  }
  const char* mode = PG_ARGISNULL(pulse::kSpecColumns)
                         ? "replace"
                         : pulse::mode_named(PG_GETARG_TEXT_PP(pulse::kSpecColumns));
  pulse::check_spec(&spec, nullptr);
  PG_RETURN_DATUM(spec.nulls[pulse::kSpecJobKey] ? pulse::add_one(spec)
                                                 : pulse::add_keyed(&spec, mode));
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
