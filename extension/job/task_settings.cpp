#include "job/task_settings.hpp"

#include "access/columns.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

constexpr int kDefaultMaxAttempts = 25;

TaskSettings defaults() {
  TaskSettings found = {
      kNull, kNull, {CStringGetTextDatum("continue"), false}, kNull, settings.max_crashes};
  if (settings.default_timeout_ms >= 0) {
    auto* timeout = static_cast<Interval*>(palloc0(sizeof(Interval)));
    timeout->time = settings.default_timeout_ms * INT64CONST(1000);
    found.timeout = {IntervalPGetDatum(timeout), false};
  }
  return found;
}

// Copies a value that is set, so that it outlives the row. A NULL keeps the default.
void overlay(TupleTableSlot* row, AttrNumber column, NullableDatum* value) {
  NullableDatum stored = field_of(row, column);
  if (stored.isnull) return;
  Form_pg_attribute attribute = TupleDescAttr(row->tts_tupleDescriptor, column - 1);
  *value = {datumCopy(stored.value, attribute->attbyval, attribute->attlen), false};
}

// The column is text, because pg_upgrade refuses the type regprocedure, which 0.1.0 has. A task
// whose function was dropped has no handler.
void overlay_handler(TupleTableSlot* row, TaskSettings* found) {
  if (TupleDescAttr(row->tts_tupleDescriptor, kTaskHandler - 1)->atttypid == REGPROCEDUREOID)
    return overlay(row, kTaskHandler, &found->handler);
  if (slot_attisnull(row, kTaskHandler)) return;
  LOCAL_FCINFO(call, 1);
  InitFunctionCallInfoData(*call, nullptr, 1, InvalidOid, nullptr, nullptr);
  call->args[0] = field_of(row, kTaskHandler);
  found->handler.value = to_regprocedure(call);
  found->handler.isnull = call->isnull;
}

}  // namespace

TaskSettings task_settings(Datum identifier, Snapshot snapshot) {
  TaskSettings found = defaults();
  with_task_row(identifier, snapshot, [&found](TupleTableSlot* row) {
    overlay(row, kTaskTimeout, &found.timeout);
    overlay(row, kTaskStallTimeout, &found.stall_timeout);
    overlay(row, kTaskOnUnreachable, &found.on_unreachable);
    overlay_handler(row, &found);
    NullableDatum crashes = field_of(row, kTaskMaxCrashes);
    if (!crashes.isnull) found.max_crashes = DatumGetInt32(crashes.value);
  });
  return found;
}

JobDefaults job_defaults(Datum identifier) {
  Snapshot snapshot =
      RegisterSnapshot(IsolationUsesXactSnapshot() ? GetActiveSnapshot() : GetLatestSnapshot());
  JobDefaults found = {kDefaultMaxAttempts, kNull, false, {}};
  with_task_row(identifier, snapshot, [&found](TupleTableSlot* row) {
    NullableDatum own = field_of(row, kTaskMaxAttempts);
    if (!own.isnull) found.max_attempts = DatumGetInt16(own.value);
    found.expires = catalog()->has_index_lanes && !slot_attisnull(row, kTaskExpiresAfter);
    if (found.expires) found.expires_after = *DatumGetIntervalP(value_of(row, kTaskExpiresAfter));
    if (catalog()->task_queue != InvalidAttrNumber)
      overlay(row, catalog()->task_queue, &found.queue);
  });
  UnregisterSnapshot(snapshot);
  return found;
}

bool task_keeps_completed(Datum identifier, Snapshot snapshot) {
  bool keeps = settings.keep_completed_s != 0;
  with_task_row(identifier, snapshot, [&keeps](TupleTableSlot* row) {
    if (slot_attisnull(row, kTaskKeepCompleted)) return;
    Interval none = {};
    keeps = DatumGetBool(DirectFunctionCall2(interval_ne, value_of(row, kTaskKeepCompleted),
                                             IntervalPGetDatum(&none)));
  });
  return keeps;
}

bool some_task_keeps_completed(Snapshot snapshot) {
  if (settings.keep_completed_s != 0) return true;
  return any_task(snapshot,
                  [](TupleTableSlot* row) { return !slot_attisnull(row, kTaskKeepCompleted); });
}

bool task_has_dead_letter(Datum identifier, Snapshot snapshot) {
  AttrNumber column = catalog()->task_dead_letter;
  if (column == InvalidAttrNumber) return false;
  bool found = false;
  with_task_row(identifier, snapshot,
                [&](TupleTableSlot* row) { found = !slot_attisnull(row, column); });
  return found;
}

}  // namespace pulse

// pulse_internal.keeps_completed(identifier)
PULSE_FUNCTION(pulse_keeps_completed) {
  PG_RETURN_BOOL(pulse::task_keeps_completed(PG_GETARG_DATUM(0), GetActiveSnapshot()));
}

// pulse_internal.is_poison(crashes, max_crashes)
PULSE_FUNCTION(pulse_is_poison) {
  PG_RETURN_BOOL(pulse::is_poison(PG_GETARG_INT32(0), PG_GETARG_INT32(1)));
}

// pulse_internal.max_crashes_of(identifier)
PULSE_FUNCTION(pulse_max_crashes_of) {
  PG_RETURN_INT32(pulse::task_settings(PG_GETARG_DATUM(0), GetActiveSnapshot()).max_crashes);
}
