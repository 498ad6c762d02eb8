// The settings of tasks: every read of pulse.task goes through this file.
#pragma once

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "server/compat.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Calls use(row) with the row of this task, if it has one.
template <typename Use>
void with_task_row(Datum identifier, Snapshot snapshot, Use use) {
  Relation table = table_open(catalog()->task, AccessShareLock);
  Relation index = index_open(catalog()->task_key, AccessShareLock);
  TupleTableSlot* row = table_slot_create(table, nullptr);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, identifier);
  IndexScanDesc scan = begin_index_scan(table, index, snapshot, 1);
  index_rescan(scan, &key, 1, nullptr, 0);
  if (index_getnext_slot(scan, ForwardScanDirection, row)) use(row);
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  index_close(index, AccessShareLock);
  table_close(table, AccessShareLock);
}

// Whether the condition holds for the row of any task.
template <typename Condition>
bool any_task(Snapshot snapshot, Condition condition) {
  Relation table = table_open(catalog()->task, AccessShareLock);
  TupleTableSlot* row = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  bool found = false;
  while (!found && table_scan_getnextslot(scan, ForwardScanDirection, row)) {
    CHECK_FOR_INTERRUPTS();
    found = condition(row);
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  table_close(table, AccessShareLock);
  return found;
}

// The settings that a claim hands to the worker.
struct TaskSettings {
  Datum timeout;  // interval
  bool timeout_null;
  Datum stall_timeout;
  bool stall_timeout_null;
  Datum on_unreachable;
  bool on_unreachable_null;
  Datum handler;
  bool handler_null;
  int max_crashes;  // -1: never quarantined
};

// Reads the settings under the snapshot; a task without a row has the defaults.
TaskSettings task_settings(Datum identifier, Snapshot snapshot);

// The number of attempts of a new job, unless the producer gives one. Reads the latest committed
// row, or in a transaction with one snapshot for all its statements, the row that this shows.
int task_max_attempts(Datum identifier);

}  // namespace pulse
