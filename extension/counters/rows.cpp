// The counters as SQL sees them: see sql/monitor/counters.sql.
#include "counters/counters.hpp"
#include "counters/noted_attempts.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"

#include <cmath>

namespace pulse {
namespace {

constexpr int64 kMinuteUs = 60000000;
constexpr int64 kLateUs = 1000000;  // a commit counts its notes within that time

// Without the zeros at the end.
Datum array_of_counts(const uint32* counts) {
  int length = kBuckets;
  while (length > 0 && counts[length - 1] == 0) length--;
  Datum elements[kBuckets];
  for (int i = 0; i < length; i++)
    elements[i] =
        Int32GetDatum(static_cast<int32>(Min(counts[i], static_cast<uint32>(PG_INT32_MAX))));
  return PointerGetDatum(construct_array(elements, length, INT4OID, 4, true, TYPALIGN_INT));
}

void put_row(void* context, CounterKind kind, const char* name, int length,
             const PeriodCounts& counts) {
  auto* results = static_cast<ReturnSetInfo*>(context);
  Datum values[3 + kAttemptEvents + 2];
  bool nulls[lengthof(values)] = {};
  values[0] = CStringGetTextDatum(kind == kTaskCounter ? "task" : "queue");
  values[1] = PointerGetDatum(cstring_to_text_with_len(name, length));
  values[2] = TimestampTzGetDatum(counts.period * kPeriodUs);
  for (int event = 0; event < kAttemptEvents; event++)
    values[3 + event] = Int64GetDatum(static_cast<int64>(counts.events[event]));
  values[3 + kAttemptEvents] = array_of_counts(counts.waits);
  values[4 + kAttemptEvents] = array_of_counts(counts.runs);
  tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
}

// Returns the last minute that is over, or 0 when no minute is to be added.
int64 minute_to_add() {
  if (!has_counters()) return 0;
  int64 minute = (wall_now() - kLateUs) / kMinuteUs - 1;
  if (minute == added_minute() || !try_advisory_lock(LockKind::kCounters, 0, ExclusiveLock))
    return 0;
  return minute;
}

// --- histograms ---------------------------------------------------------------------------------

int length_of(const ArrayType* array) { return ARR_NDIM(array) == 0 ? 0 : ARR_DIMS(array)[0]; }

void check_counts(const ArrayType* array, Oid element) {
  if (ARR_NDIM(array) > 1 || ARR_HASNULL(array) || ARR_ELEMTYPE(array) != element ||
      length_of(array) > kBuckets)
    elog(ERROR, "no histogram");
}

int64* sums_in(ArrayType* array) { return reinterpret_cast<int64*>(ARR_DATA_PTR(array)); }

ArrayType* copy_of_sums(ArrayType* sums, int length) {
  Size size = ARR_OVERHEAD_NONULLS(1) + sizeof(int64) * length;
  auto* copy = static_cast<ArrayType*>(palloc0(size));
  SET_VARSIZE(copy, size);
  copy->ndim = 1;
  copy->elemtype = INT8OID;
  ARR_DIMS(copy)[0] = length;
  ARR_LBOUND(copy)[0] = 1;
  memcpy(sums_in(copy), sums_in(sums), sizeof(int64) * length_of(sums));
  return copy;
}

// Changes the sums of an aggregate in place where the sums have enough elements for the counts.
ArrayType* add_counts(ArrayType* sums, ArrayType* counts, bool in_place) {
  int length = length_of(counts);
  if (length == 0) return sums;
  if (!in_place || length > length_of(sums))
    sums = copy_of_sums(sums, Max(length, length_of(sums)));
  auto* added = reinterpret_cast<int32*>(ARR_DATA_PTR(counts));
  for (int i = 0; i < length; i++) sums_in(sums)[i] += added[i];
  return sums;
}

int64 rank_of(ArrayType* sums, float8 part) {
  int64 total = 0;
  for (int i = 0; i < length_of(sums); i++) total += sums_in(sums)[i];
  auto rank = static_cast<int64>(std::ceil(static_cast<float8>(total) * part));
  return total == 0 ? 0 : Max(Min(rank, total), 1);
}

}  // namespace
}  // namespace pulse

// pulse_internal.counted(): the periods in shared memory.
PULSE_FUNCTION(pulse_counted) {
  pulse::begin_result_rows(fcinfo);
  if (pulse::has_counters()) pulse::read_counters(fcinfo->resultinfo, pulse::put_row);
  return static_cast<Datum>(0);
}

PULSE_FUNCTION(pulse_has_counters) { PG_RETURN_BOOL(pulse::has_counters()); }

// pulse_internal.begin_adding(): see sql/monitor/counters.sql.
PULSE_FUNCTION(pulse_begin_adding) {
  int64 minute = pulse::minute_to_add();
  if (minute == 0) PG_RETURN_NULL();
  pulse::note_added_minute(minute);
  PG_RETURN_TIMESTAMPTZ(minute * pulse::kMinuteUs);
}

// pulse_internal.add_counts(sums, counts): the transition of sum_counts().
PULSE_FUNCTION(pulse_add_counts) {
  MemoryContext aggregate;
  bool in_place = AggCheckCallContext(fcinfo, &aggregate) != 0;
  ArrayType* sums = PG_GETARG_ARRAYTYPE_P(0);
  ArrayType* counts = PG_GETARG_ARRAYTYPE_P(1);
  pulse::check_counts(sums, INT8OID);
  pulse::check_counts(counts, INT4OID);
  MemoryContext old = MemoryContextSwitchTo(in_place ? aggregate : CurrentMemoryContext);
  sums = pulse::add_counts(sums, counts, in_place);
  MemoryContextSwitchTo(old);
  PG_RETURN_ARRAYTYPE_P(sums);
}

// pulse_internal.percentile(sums, part): the middle of the bucket that has the percentile.
PULSE_FUNCTION(pulse_percentile) {
  ArrayType* sums = PG_GETARG_ARRAYTYPE_P(0);
  pulse::check_counts(sums, INT8OID);
  int64 rank = pulse::rank_of(sums, PG_GETARG_FLOAT8(1));
  if (rank == 0) PG_RETURN_NULL();
  int bucket = 0;
  for (int64 before = pulse::sums_in(sums)[0]; before < rank;)
    before += pulse::sums_in(sums)[++bucket];
  auto* duration = static_cast<Interval*>(palloc0(sizeof(Interval)));
  duration->time = pulse::bucket_middle_us(bucket);
  PG_RETURN_INTERVAL_P(duration);
}

// pulse_internal.bucket_begin_us(bucket)
PULSE_FUNCTION(pulse_bucket_begin_us) {
  int64 bucket = PG_GETARG_INT64(0) - 1;
  if (bucket < 0 || bucket >= pulse::kBuckets) PG_RETURN_NULL();
  PG_RETURN_INT64(pulse::bucket_begin_us(static_cast<int>(bucket)));
}
