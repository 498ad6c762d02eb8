#include "liveness/clock.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

// One committed reading of the clock table.
struct ClockReading {
  int64 vt_us;
  TimestampTz last_tick;
  int32 timeline;
};

// The row with the latest time counts, because an older row belongs to an earlier sweep.
ClockReading read_clock() {
  ClockReading reading = {-1, 0, 0};
  Relation clock = table_open(clock_table(), AccessShareLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* tuple = table_slot_create(clock, nullptr);
  TableScanDesc scan = table_beginscan(clock, snapshot, 0, nullptr);
  while (table_scan_getnextslot(scan, ForwardScanDirection, tuple)) {
    int64 vt = DatumGetInt64(value_of(tuple, kClockVt));
    if (vt < reading.vt_us) continue;
    TimestampTz tick = DatumGetTimestampTz(value_of(tuple, kClockLastTick));
    if (vt == reading.vt_us && tick < reading.last_tick) continue;
    reading = {vt, tick, DatumGetInt32(value_of(tuple, kClockTimeline))};
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(tuple);
  UnregisterSnapshot(snapshot);
  table_close(clock, AccessShareLock);
  if (reading.vt_us < 0)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("table pulse.clock is empty"),
                    errhint("Restore its rows: INSERT INTO pulse.clock VALUES (1, 0, now(), 0).")));
  return reading;
}

}  // namespace

int32 current_timeline() {
  // A standby writes into no timeline.
  PreventCommandDuringRecovery("pg_pulse's liveness clock");
  return static_cast<int32>(insertion_timeline());
}

int64 live_base_us_at(TimestampTz at) {
  ClockReading reading = read_clock();
  // A new timeline adds nothing: no worker could beat between the primary's end and the promotion.
  if (reading.timeline != current_timeline()) return reading.vt_us;
  // Neither does the time before this incarnation of the server. A moment before the tick counts as
  // the tick, so that a worker is lost too late rather than early.
  int64 elapsed_us = at - Max(reading.last_tick, incarnation_started_at());
  return reading.vt_us + Min(Max(elapsed_us, 0), longest_tick_us());
}

// The time that a tick stores.
static int64 live_base_us(TimestampTz at) {
  return clock_is_frozen() ? static_cast<int64>(settings.frozen_live_us) : live_base_us_at(at);
}

int64 live_now_us() { return live_base_us(GetCurrentTimestamp()) + clock_offset_us(); }

}  // namespace pulse

// The function of 0.1.0 has no argument.
PULSE_FUNCTION(pulse_live_base_us) {
  TimestampTz at = PG_NARGS() > 0 ? PG_GETARG_TIMESTAMPTZ(0) : GetCurrentTimestamp();
  PG_RETURN_INT64(pulse::live_base_us(at));
}

PULSE_FUNCTION(pulse_live_now_us) { PG_RETURN_INT64(pulse::live_now_us()); }
PULSE_FUNCTION(pulse_current_timeline) { PG_RETURN_INT32(pulse::current_timeline()); }
PULSE_FUNCTION(pulse_longest_tick_us) { PG_RETURN_INT64(pulse::longest_tick_us()); }
