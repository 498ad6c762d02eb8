#include "job/new_job.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/ids.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "shared/queue_name.hpp"
#include "wake/pending_wakes.hpp"

extern "C" {
#include "lib/qunique.h"
#include "mb/pg_wchar.h"
}

namespace pulse {
namespace {

int compare_text(const void* a, const void* b) {
  return DatumGetInt32(DirectFunctionCall2Coll(
      bttextcmp, C_COLLATION_OID, *static_cast<const Datum*>(a), *static_cast<const Datum*>(b)));
}

// A job travels with its flags in each claim, and the claim compares each flag with the worker's
// flags.
void check_flags(const Datum* flags, int count) {
  if (count > kMaxFlags)
    ereport(ERROR,
            (errcode(kOutOfRange), errmsg("flags has %d names, out of range", count),
             errhint("It may have %d, each of at most %d characters.", kMaxFlags, kMaxName)));
  for (int i = 0; i < count; i++) {
    const text* flag = DatumGetTextPP(flags[i]);
    check_utf8("a flag", flag);
    const char* name = VARDATA_ANY(flag);
    int bytes = static_cast<int>(VARSIZE_ANY_EXHDR(flag));
    int characters = bytes > kMaxName ? pg_mbstrlen_with_len(name, bytes) : bytes;
    if (characters > kMaxName)
      ereport(ERROR,
              (errcode(kOutOfRange), errmsg("a flag has %d characters, out of range", characters),
               errdetail("It begins with %s.",
                         quote_literal_cstr(pnstrdup(name, pg_mbcharcliplen(name, bytes, 32)))),
               errhint("It may have %d.", kMaxName)));
  }
}

// Stores flags as a set: sorted, without duplicates, NULL when empty.
void normalize_flags(RowValue* spec) {
  if (!spec->has(kSpecFlags)) return;
  int count;
  Datum* flags = text_elements(DatumGetArrayTypeP(spec->value(kSpecFlags)), "flags", &count);
  qsort(flags, count, sizeof(Datum), compare_text);
  int kept = static_cast<int>(qunique(flags, count, sizeof(Datum), compare_text));
  check_flags(flags, kept);
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

const JobDefaults& defaults_of(const RowValue& spec, LastTask* last) {
  Datum identifier = spec.value(kSpecIdentifier);
  if (last->defaults.max_attempts == 0 || !datum_image_eq(identifier, last->identifier, false, -1))
    *last = {identifier, job_defaults(identifier)};
  return last->defaults;
}

// A job that names no queue gets the queue of its task.
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

// A transaction requests a sweep for the time at which one of its jobs expires.
void set_start_by(RowValue* job, const RowValue& spec, LastTask* last, NullableDatum start_by) {
  const JobDefaults& defaults = defaults_of(spec, last);
  if (start_by.isnull && defaults.expires)
    start_by = given(DirectFunctionCall2(timestamptz_pl_interval, spec.value(kSpecRunAt),
                                         IntervalPGetDatum(&defaults.expires_after)));
  job->set(kJobStartBy, start_by);
  if (!start_by.isnull) note_sweep(DatumGetTimestampTz(start_by.value));
}

}  // namespace

void check_spec(RowValue* spec, LastTask* last) {
  check_names(*spec);
  if (!spec->has(kSpecPayload)) spec->set(kSpecPayload, CStringGetTextDatum("{}"));
  check_document("payload", spec->value(kSpecPayload));
  complete_queue(spec, last);
  complete_run_at(spec);
  complete_numbers(spec, last);
  normalize_flags(spec);
}

Origin plain_origin(const NullableDatum& added_by) {
  return {kNull, kNull, kNull, kNull, kNull, kNull, added_by, kNull};
}

TupleDesc spec_shape(HeapTupleHeader spec) {
  return shape_of_type(spec, "pulse.job_spec", kSpecColumns);
}

void start_adding(NewJobs* jobs) {
  PreventCommandIfReadOnly("add_job");
  open_new_jobs(jobs);
}

HeapTuple form_job(NewJobs* jobs, const RowValue& spec, LastTask* last, const Origin& origin) {
  RowValue job;
  memset(job.nulls, true, sizeof(job.nulls));
  Datum now = TimestampTzGetDatum(transaction_now());
  bool is_parked = spec.has(kSpecQueueName) || !origin.waits_on.isnull;
  job.set(kJobId,
          origin.id.isnull ? given(Int64GetDatum(next_id(catalog()->job_id_seq))) : origin.id);
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
  job.set(kJobAddedBy, origin.added_by);
  job.set(kJobDeadLetterOf, origin.dead_letter_of);
  if (*settings.traceparent) job.set(kJobTraceparent, CStringGetTextDatum(settings.traceparent));
  set_start_by(&job, spec, last, origin.start_by);
  return form_new_job(jobs, &job);
}

}  // namespace pulse
