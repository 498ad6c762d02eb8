#include "job/task_settings.hpp"

#include "access/columns.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

constexpr int kDefaultMaxAttempts = 25;

TaskSettings defaults() {
  TaskSettings settings_of = {};
  settings_of.timeout_null = settings.default_timeout_ms < 0;
  if (!settings_of.timeout_null) {
    auto* timeout = static_cast<Interval*>(palloc0(sizeof(Interval)));
    timeout->time = settings.default_timeout_ms * INT64CONST(1000);
    settings_of.timeout = IntervalPGetDatum(timeout);
  }
  settings_of.stall_timeout_null = true;
  settings_of.on_unreachable = CStringGetTextDatum("continue");
  settings_of.handler_null = true;
  settings_of.max_crashes = settings.max_crashes;
  return settings_of;
}

// Copies a value that is set, so that it outlives the row. A NULL keeps the default.
void overlay(TupleTableSlot* row, AttrNumber column, Datum* value, bool* null) {
  bool isnull;
  Datum stored = slot_getattr(row, column, &isnull);
  if (isnull) return;
  Form_pg_attribute attribute = TupleDescAttr(row->tts_tupleDescriptor, column - 1);
  *value = datumCopy(stored, attribute->attbyval, attribute->attlen);
  *null = false;
}

// The column is text, because pg_upgrade refuses the type regprocedure, which 0.1.0 has. A task
// whose function was dropped has no handler.
void overlay_handler(TupleTableSlot* row, TaskSettings* found) {
  if (TupleDescAttr(row->tts_tupleDescriptor, kTaskHandler - 1)->atttypid == REGPROCEDUREOID)
    return overlay(row, kTaskHandler, &found->handler, &found->handler_null);
  bool isnull;
  Datum stored = slot_getattr(row, kTaskHandler, &isnull);
  if (isnull) return;
  LOCAL_FCINFO(call, 1);
  InitFunctionCallInfoData(*call, nullptr, 1, InvalidOid, nullptr, nullptr);
  call->args[0].value = stored;
  call->args[0].isnull = false;
  found->handler = to_regprocedure(call);
  found->handler_null = call->isnull;
}

}  // namespace

TaskSettings task_settings(Datum identifier, Snapshot snapshot) {
  TaskSettings found = defaults();
  with_task_row(identifier, snapshot, [&found](TupleTableSlot* row) {
    overlay(row, kTaskTimeout, &found.timeout, &found.timeout_null);
    overlay(row, kTaskStallTimeout, &found.stall_timeout, &found.stall_timeout_null);
    overlay(row, kTaskOnUnreachable, &found.on_unreachable, &found.on_unreachable_null);
    overlay_handler(row, &found);
    bool isnull;
    Datum crashes = slot_getattr(row, kTaskMaxCrashes, &isnull);
    if (!isnull) found.max_crashes = DatumGetInt32(crashes);
  });
  return found;
}

int task_max_attempts(Datum identifier) {
  Snapshot snapshot =
      RegisterSnapshot(IsolationUsesXactSnapshot() ? GetActiveSnapshot() : GetLatestSnapshot());
  int max_attempts = kDefaultMaxAttempts;
  with_task_row(identifier, snapshot, [&max_attempts](TupleTableSlot* row) {
    bool isnull;
    Datum own = slot_getattr(row, kTaskMaxAttempts, &isnull);
    if (!isnull) max_attempts = DatumGetInt16(own);
  });
  UnregisterSnapshot(snapshot);
  return max_attempts;
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

}  // namespace pulse

// pulse._keeps_completed(identifier)
PULSE_FUNCTION(pulse_keeps_completed) {
  PG_RETURN_BOOL(pulse::task_keeps_completed(PG_GETARG_DATUM(0), GetActiveSnapshot()));
}
