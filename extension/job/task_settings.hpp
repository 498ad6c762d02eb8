// The settings of tasks: every read of pulse.task goes through this file.
#pragma once

#include "access/catalog.hpp"
#include "job/table.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Calls use(row) with the row of this task, if it has one.
template <typename Use>
void with_task_row(Datum identifier, Snapshot snapshot, Use use) {
  Relation table = table_open(catalog()->task, AccessShareLock);
  with_row_of_text(table, catalog()->task_key, identifier, snapshot, use);
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
  NullableDatum timeout;        // interval
  NullableDatum stall_timeout;  // interval
  NullableDatum on_unreachable;
  NullableDatum handler;  // regprocedure
  int max_crashes;        // -1: never quarantined
};

// Whether a job with so many crashes is quarantined.
inline bool is_poison(int crashes, int max_crashes) {
  return crashes > 0 && max_crashes >= 0 && crashes >= max_crashes;
}

// Reads the settings under the snapshot; a task without a row has the defaults.
TaskSettings task_settings(Datum identifier, Snapshot snapshot);

// Values of a new job that come from its task where the producer gives none.
struct JobDefaults {
  int max_attempts;
  NullableDatum queue;  // may name members of the payload
  bool expires;
  Interval expires_after;  // the job's start_by, counted from its run_at
};

// Reads the latest committed row. In a transaction with one snapshot for all statements, reads the
// row that the snapshot shows.
JobDefaults job_defaults(Datum identifier);

// Whether a completed job of this task is kept.
bool task_keeps_completed(Datum identifier, Snapshot snapshot);

// False when no task and no setting keeps completed jobs.
bool some_task_keeps_completed(Snapshot snapshot);

// Whether the death of a job of this task adds a dead letter: sql/job/dead_letter.sql.
bool task_has_dead_letter(Datum identifier, Snapshot snapshot);

}  // namespace pulse
