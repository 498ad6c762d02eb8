// Whether a worker is lost, by one version of its heartbeat row: see sql/lost.sql. Each sweep asks
// for each worker.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// The smallest threshold of a worker: two heartbeats and one and a half sweeps fit into it.
int64 least_threshold_us(int64 interval_us) {
  int64 sweep_interval_us = Max(settings.sweep_interval_ms, 0) * INT64CONST(1000);
  return 2 * interval_us + sweep_interval_us * 3 / 2;
}

// Why the worker is lost; NULL while it is alive, or when it has ended already.
const char* lost_cause(const RowValue& beat, int64 live_us) {
  // A row of NULLs belongs to no worker.
  if (!beat.has(kBeatStatus)) return nullptr;
  Datum status = beat.value(kBeatStatus);
  if (text_is(status, "lost") || text_is(status, "stopped")) return nullptr;
  bool is_attached = beat.has(kBeatAttachment);
  int64 beaten_us = DatumGetInt64(beat.value(kBeatLive));
  if (is_attached && beat.has(kBeatDetachedLive) && settings.disconnect_grace_ms >= 0) {
    int64 detached_us = DatumGetInt64(beat.value(kBeatDetachedLive));
    if (live_us - detached_us >= settings.disconnect_grace_ms * INT64CONST(1000) &&
        beaten_us <= detached_us)
      return "session";
  }
  int64 interval_us = DatumGetInt64(beat.value(kBeatInterval));
  if (interval_us == 0 && is_attached && !beat.has(kBeatDetachedLive)) return nullptr;
  int64 threshold_us =
      Max(DatumGetInt64(beat.value(kBeatThreshold)), least_threshold_us(interval_us));
  return live_us - beaten_us > threshold_us ? "silence" : nullptr;
}

}  // namespace
}  // namespace pulse

// pulse._least_threshold_us(interval_us)
PULSE_FUNCTION(pulse_least_threshold_us) {
  PG_RETURN_INT64(pulse::least_threshold_us(PG_GETARG_INT64(0)));
}

// pulse._lost_way(beat, live_us)
PULSE_FUNCTION(pulse_lost_way) {
  pulse::RowValue beat;
  pulse::read_row_value(&beat, PG_GETARG_HEAPTUPLEHEADER(0), "heartbeat");
  const char* cause = pulse::lost_cause(beat, PG_GETARG_INT64(1));
  if (!cause) PG_RETURN_NULL();
  PG_RETURN_TEXT_P(cstring_to_text(cause));
}
