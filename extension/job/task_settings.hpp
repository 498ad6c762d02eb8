// What pulse.task says: every read of that table is here.
#pragma once

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "server/compat.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Calls use(row) with the row of this task, if there is one.
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

// Whether such a row is there for any task.
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

// What a claim hands to the worker of it.
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

// Reads them under the snapshot; a task without a row has the defaults.
TaskSettings task_settings(Datum identifier, Snapshot snapshot);

// How many attempts a job has that is added now, unless the producer says otherwise. Reads what is
// committed by now, or what a transaction with one snapshot for all its statements sees.
int task_max_attempts(Datum identifier);

}  // namespace pulse
