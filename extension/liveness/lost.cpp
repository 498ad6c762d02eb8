// Who is lost, by one version of a heartbeat row: see sql/lost.sql. Each sweep asks for each
// worker.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// What every worker's settings must keep: two beats and a sweep and a half fit into the threshold.
int64 least_threshold_us(int64 interval_us) {
  int64 sweep_interval_us = Max(settings.sweep_interval_ms, 0) * INT64CONST(1000);
  return 2 * interval_us + sweep_interval_us * 3 / 2;
}

struct Beat {
  Datum values[kMaxColumns];
  bool nulls[kMaxColumns];

  bool has(HeartbeatColumn column) const { return !nulls[column - 1]; }
  int64 number(HeartbeatColumn column) const { return DatumGetInt64(values[column - 1]); }
};

void read_beat(Beat* beat, HeapTupleHeader header) {
  TupleDesc shape = shape_of(header);
  check_columns(shape, "heartbeat");
  read_fields(header, shape, beat->values, beat->nulls);
  ReleaseTupleDesc(shape);
}

// NULL while it is alive, or has ended already.
const char* lost_cause(const Beat& beat, int64 live_us) {
  // That of no worker at all.
  if (!beat.has(kBeatStatus)) return nullptr;
  Datum status = beat.values[kBeatStatus - 1];
  if (text_is(status, "lost") || text_is(status, "stopped")) return nullptr;
  bool is_attached = beat.has(kBeatAttachment);
  int64 beaten_us = beat.number(kBeatLive);
  if (is_attached && beat.has(kBeatDetachedLive) && settings.disconnect_grace_ms >= 0) {
    int64 detached_us = beat.number(kBeatDetachedLive);
    if (live_us - detached_us >= settings.disconnect_grace_ms * INT64CONST(1000) &&
        beaten_us <= detached_us)
      return "session";
  }
  int64 interval_us = beat.number(kBeatInterval);
  if (interval_us == 0 && is_attached && !beat.has(kBeatDetachedLive)) return nullptr;
  int64 threshold_us = Max(beat.number(kBeatThreshold), least_threshold_us(interval_us));
  return live_us - beaten_us > threshold_us ? "silence" : nullptr;
}

}  // namespace
}  // namespace pulse

// pulse._least_threshold_us(interval_us)
PULSE_FUNCTION(pulse_least_threshold_us) {
  PG_RETURN_INT64(pulse::least_threshold_us(PG_GETARG_INT64(0)));
}

// pulse._lost_cause(beat, live_us)
PULSE_FUNCTION(pulse_lost_way) {
  pulse::Beat beat;
  pulse::read_beat(&beat, PG_GETARG_HEAPTUPLEHEADER(0));
  const char* cause = pulse::lost_cause(beat, PG_GETARG_INT64(1));
  if (!cause) PG_RETURN_NULL();
  PG_RETURN_TEXT_P(cstring_to_text(cause));
}
