// Rows of pulse.job changed without planner and executor: lock one row or step over it, then update
// it and its indexes. Only for rows that this extension's own functions write.
#pragma once

#include "prelude.hpp"

namespace pulse {

struct JobTable {
  Relation relation;
  Snapshot snapshot;
  EState* estate;
  ResultRelInfo* result;
  EPQState epq;
  TupleTableSlot* locked;  // the row that was locked last
  TupleTableSlot* changed;
};

// What an update changes; columns are numbered from 1 as in JobColumn.
struct JobChange {
  Datum values[32];
  bool nulls[32];
  bool replaces[32];

  void set(int column, Datum value) {
    values[column - 1] = value;
    nulls[column - 1] = false;
    replaces[column - 1] = true;
  }
  void clear(int column) {
    nulls[column - 1] = true;
    replaces[column - 1] = true;
  }
};

// Opens the table under a new snapshot that also shows what this transaction did so far.
void open_job_table(JobTable* table);
void close_job_table(JobTable* table);

// Locks the very version that the snapshot showed. False when somebody holds or has changed it:
// such a row is another's to handle, and nobody is waited for.
bool try_lock_row(JobTable* table, TupleTableSlot* seen);

// Updates the row that was locked last.
void update_locked_row(JobTable* table, JobChange* change);

}  // namespace pulse
