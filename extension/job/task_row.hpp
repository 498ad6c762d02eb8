// The row of a task in pulse.task, by whoever needs a setting of it.
#pragma once

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "server/compat.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Columns of pulse.task by number; the install script and this list change together.
enum TaskColumn : AttrNumber {
  kTaskMaxAttempts = 2,
  kTaskTimeout,
  kTaskStallTimeout,
  kTaskBackoff,
  kTaskBackoffBase,
  kTaskBackoffCap,
  kTaskJitter,
  kTaskKeepCompleted,
  kTaskMaxCrashes,
  kTaskOnUnreachable,
  kTaskHandler,
  kTaskCreatedAt,
  kTaskUpdatedAt,
};

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

}  // namespace pulse
