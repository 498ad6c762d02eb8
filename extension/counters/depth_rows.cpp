// The depths as SQL sees them, and the triggers that note the rows of statements:
// sql/monitor/depths.sql.
#include "access/catalog.hpp"
#include "counters/noted_depths.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

void put_depth(ReturnSetInfo* results, const char* kind, const DepthReading& reading,
               const DepthReadings& read) {
  Datum values[11];
  bool nulls[lengthof(values)] = {};
  values[0] = CStringGetTextDatum(kind);
  values[1] = PointerGetDatum(cstring_to_text_with_len(reading.name, reading.length));
  nulls[1] = reading.length == 0;
  const int64* jobs = reading.jobs;
  values[2] = Int64GetDatum(jobs[kReady]);
  values[3] = Int64GetDatum(jobs[kParked] + jobs[kAfterOthers]);
  values[4] = Int64GetDatum(jobs[kAfterOthers]);
  values[5] = Int64GetDatum(jobs[kRunning]);
  values[6] = TimestampTzGetDatum(reading.claimed_at);
  nulls[6] = reading.claimed_at == 0;
  constexpr RunAtRange kNoJob;
  values[7] = TimestampTzGetDatum(reading.run_at.soonest);
  nulls[7] = reading.run_at.soonest == kNoJob.soonest;
  values[8] = TimestampTzGetDatum(reading.run_at.latest);
  nulls[8] = reading.run_at.latest == kNoJob.latest;
  values[9] = BoolGetDatum(read.status == DepthsStatus::kExact);
  values[10] = TimestampTzGetDatum(read.counted_at);
  tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
}

// The sums over all tasks come first, also where there is no job.
void put_depths(ReturnSetInfo* results, const DepthReadings& read) {
  DepthReading sums = {};
  for (int i = 0; i < read.count; i++) {
    if (read.readings[i].kind != kTaskDepth) continue;
    for (int state = 0; state < kDepthStates; state++)
      sums.jobs[state] += read.readings[i].jobs[state];
    sums.run_at.add(read.readings[i].run_at);
  }
  put_depth(results, "all", sums, read);
  for (int i = 0; i < read.count; i++)
    put_depth(results, read.readings[i].kind == kTaskDepth ? "task" : "queue", read.readings[i],
              read);
}

void note_written_row(TriggerData* trigger) {
  TupleTableSlot* row = trigger->tg_trigslot;
  if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
    note_added_job(depth_row(row));
  else if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
    note_deleted_job(depth_row(row));
  else if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
    note_changed_job(depth_row(row), depth_row(trigger->tg_newslot));
  else
    note_truncated_jobs();
}

}  // namespace
}  // namespace pulse

// pulse_internal.count_written_job(): the trigger of pulse.job.
PULSE_FUNCTION(pulse_count_written_job) {
  if (!CALLED_AS_TRIGGER(fcinfo)) elog(ERROR, "not called as a trigger");
  auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
  if (RelationGetRelid(trigger->tg_relation) == pulse::catalog()->job)
    pulse::note_written_row(trigger);
  return PointerGetDatum(nullptr);
}

// pulse_internal.depths()
PULSE_FUNCTION(pulse_depths) {
  pulse::begin_result_rows(fcinfo);
  pulse::DepthReadings read = pulse::read_depths_with_own();
  if (read.status != pulse::DepthsStatus::kExact) pulse::recount_if_due();
  if (read.status != pulse::DepthsStatus::kUnknown)
    pulse::put_depths(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), read);
  return static_cast<Datum>(0);
}

// pulse_internal.has_depths()
PULSE_FUNCTION(pulse_has_depths) {
  bool is_counted = pulse::are_depths_known();
  if (!is_counted) pulse::recount_if_due();
  PG_RETURN_BOOL(is_counted);
}

// pulse_internal.recount_if_read()
PULSE_FUNCTION(pulse_recount_if_read) { PG_RETURN_BOOL(pulse::recount_if_read()); }
