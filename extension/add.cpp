// pulse._checked_spec: one job as it is stored, checked and with its defaults. In C because
// add_jobs calls it once per job; what is done with it is in sql/add.sql.
#include "prelude.hpp"

#include "catalog.hpp"
#include "errors.hpp"
#include "names.hpp"
#include "settings.hpp"
#include "task_settings.hpp"

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

// Flags are a set: sorted, without repeats, NULL when there is none.
void settle_flags(Spec* spec) {
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
    check_name("queue_name", DatumGetTextPP(spec.values[kSpecQueueName]), kLongestName);
  if (!spec.nulls[kSpecJobKey])
    check_name("job_key", DatumGetTextPP(spec.values[kSpecJobKey]), kLongestKey);
}

void settle_run_at(Spec* spec) {
  if (spec->nulls[kSpecRunAt])
    spec->set(kSpecRunAt, TimestampTzGetDatum(transaction_now()));
  else if (TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(spec->values[kSpecRunAt])))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("run_at is infinite, which is no time"),
                    errhint("Give a moment, or leave it out for now.")));
}

void settle_numbers(Spec* spec) {
  if (spec->nulls[kSpecPriority]) spec->set(kSpecPriority, Int32GetDatum(0));
  check_number("priority", DatumGetInt32(spec->values[kSpecPriority]), PG_INT16_MIN, PG_INT16_MAX);
  if (spec->nulls[kSpecMaxAttempts])
    spec->set(kSpecMaxAttempts, Int32GetDatum(task_max_attempts(spec->values[kSpecIdentifier])));
  check_number("max_attempts", DatumGetInt32(spec->values[kSpecMaxAttempts]), 1, PG_INT16_MAX);
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_checked_spec) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, (errcode(pulse::kOutOfRange), errmsg("a job must not be null"),
                    errhint("Leave it out of the array.")));
  HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(0);
  TupleDesc descriptor =
      lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
  HeapTupleData tuple = {};
  tuple.t_len = HeapTupleHeaderGetDatumLength(header);
  tuple.t_data = header;
  pulse::Spec spec;
  heap_deform_tuple(&tuple, descriptor, spec.values, spec.nulls);
  pulse::check_names(spec);
  if (spec.nulls[pulse::kSpecPayload]) spec.set(pulse::kSpecPayload, CStringGetTextDatum("{}"));
  pulse::check_document("payload", spec.values[pulse::kSpecPayload]);
  pulse::settle_run_at(&spec);
  pulse::settle_numbers(&spec);
  pulse::settle_flags(&spec);
  HeapTuple checked = heap_form_tuple(descriptor, spec.values, spec.nulls);
  ReleaseTupleDesc(descriptor);
  PG_RETURN_DATUM(HeapTupleGetDatum(checked));
}
