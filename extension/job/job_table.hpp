// Rows of pulse.job changed without planner and executor: lock one row or step over it, then update
// it and its indexes. Only for rows that this extension's own functions write.
#pragma once

#include "access/catalog.hpp"
#include "job/job_index.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct JobTable {
  MemoryContext context;  // of what is made when it is needed
  Relation relation;
  Snapshot snapshot;
  bool is_plain;  // pulse.job, and nobody hung anything on it
  JobIndexes indexes;
  EState* estate;  // where it is not plain
  ResultRelInfo* result;
  TupleTableSlot* locked;  // the row that was locked last
  TupleTableSlot* changed;
};

// Of a table of ours, with room for some that somebody else has added.
constexpr int kMaxColumns = 40;

// What an update changes; columns are numbered from 1 as in JobColumn.
struct JobChange {
  Datum values[kMaxColumns];
  bool nulls[kMaxColumns];
  bool replaces[kMaxColumns];

  void set(int column, Datum value) {
    values[column - 1] = value;
    nulls[column - 1] = false;
    replaces[column - 1] = true;
  }
  void clear(int column) {
    nulls[column - 1] = true;
    replaces[column - 1] = true;
  }
  // Waiting jobs have no holder.
  void set_waiting(Oid state) {
    set(kJobState, ObjectIdGetDatum(state));
    bool is_parked = state == catalog()->state_parked;
    set_index_lane(is_parked ? kLaneParked : kLaneOpen, false);
    if (catalog()->has_index_lanes) clear(kJobRunningWorkerId);
  }
  // A fresh claim stays in the lane of open jobs, and so changes no column that an index has.
  void set_running(int64 worker_id, bool is_in_place) {
    set(kJobState, ObjectIdGetDatum(catalog()->state_running));
    set(kJobWorkerId, Int64GetDatum(worker_id));
    set_index_lane(is_in_place ? kLaneOpen : kLaneRunning, is_in_place);
    if (catalog()->has_index_lanes && !is_in_place)
      set(kJobRunningWorkerId, Int64GetDatum(worker_id));
  }
  // Nobody computes generated columns here.
  void set_index_lane(char lane, bool is_in_place) {
    if (!catalog()->has_index_lanes) return;
    set(kJobIndexLane, CharGetDatum(lane));
    set(kJobInPlace, BoolGetDatum(is_in_place));
  }
};

// Opens the table, in the present memory context, under a new snapshot that also shows what this
// transaction did so far.
void open_job_table(JobTable* table);
void close_job_table(JobTable* table);

// Refuses a table with more columns than there is room for.
void check_columns(TupleDesc shape, const char* name);

// For what goes through the executor, in the present memory context. What needs it does it by
// itself, because most updates need none, and it costs more than they do.
void prepare_executor(JobTable* table);

// As open_job_table, for another table of ours without row triggers and generated columns.
void open_extension_table(JobTable* table, Oid relation);

// Whether another transaction that is under way has the row, as far as one look tells: a twentieth
// of what a refused lock costs. `known` remembers its id from row to row.
bool is_locked_by_other(TupleTableSlot* seen, TransactionId* known);

// Locks the very version that the snapshot showed. False when somebody holds or has changed it:
// such a row is another's to handle, and nobody is waited for.
bool try_lock_row(JobTable* table, const ItemPointerData& seen);

// Updates the row that was locked last; its indexes only where they have to follow. Of pulse.job it
// changes the lane, or nothing that an index has.
void update_locked_row(JobTable* table, JobChange* change);

void insert_row(JobTable* table, Datum* values, bool* nulls);

// As a statement does, triggers included; `changed` has the row as they made it. Frees the tuple
// with the next one.
void insert_tuple(JobTable* table, HeapTuple tuple);

// Without waiting: TM_Ok, or who else has it.
TM_Result try_delete_row(JobTable* table, TupleTableSlot* row, bool wait = false);

}  // namespace pulse
