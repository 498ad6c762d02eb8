// The one way to write rows of pulse.job, and of the other tables that C code writes. A caller
// locks a row or steps over it, then updates or deletes it; how the row is written is decided here
// alone.
//
// A plain table has nothing but what this extension made: such rows, and their index entries, are
// written without planner and executor. On any other table, statements write the same rows
// (statement_write.hpp), so that triggers, rules and indexes of a DBA see each of them. A function
// that writes here needs no other path for such a table. What differs for it:
//   - a statement may run a trigger, which may raise an error or change the row: what was stored is
//     in `changed` after an insert or update;
//   - a suppressed row raises an error (sqlstate 09000), so a write that returns has happened;
//   - a table that is not plain gets its generated columns from the server, and a plain one from
//     JobChange::set_state.
#pragma once

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/job_index.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct JobTable {
  MemoryContext context;  // of what is made when it is needed
  Relation relation;
  Snapshot snapshot;
  bool is_job;    // pulse.job, of which JobIndexes knows every index
  bool is_plain;  // rows are written directly
  JobIndexes indexes;
  EState* estate;  // for index entries of a plain table other than pulse.job
  ResultRelInfo* result;
  TupleTableSlot* locked;   // the row that was locked last
  TupleTableSlot* changed;  // the row that was inserted or updated last, as it was stored
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
  void set_waiting(Oid state) { set_state(state, false, 0); }
  // A claim in place stays in the lane of open jobs, and so changes no column that an index has.
  void set_running(int64 worker_id, bool is_in_place) {
    set(kJobWorkerId, Int64GetDatum(worker_id));
    set_state(catalog()->state_running, is_in_place, worker_id);
  }
  // With the generated columns, which the server does not compute for a direct write.
  void set_state(Oid state, bool is_in_place, int64 worker_id) {
    set(kJobState, ObjectIdGetDatum(state));
    if (!catalog()->has_index_lanes) return;
    char lane = index_lane(state, is_in_place);
    set(kJobIndexLane, CharGetDatum(lane));
    set(kJobInPlace, BoolGetDatum(is_in_place));
    if (lane == kLaneRunning)
      set(kJobRunningWorkerId, Int64GetDatum(worker_id));
    else
      clear(kJobRunningWorkerId);
  }
};

// Opens the table, in the present memory context, under a new snapshot that also shows what this
// transaction did so far.
void open_job_table(JobTable* table);
void close_job_table(JobTable* table);

// Refuses a table with more columns than there is room for.
void check_columns(TupleDesc shape, const char* name);

// As open_job_table, for another table of ours, which has no generated columns.
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

// Inserts into a table opened by open_extension_table, of which this many columns are known. More
// columns get their defaults. (Jobs are inserted by insert_jobs.hpp.)
void insert_row(JobTable* table, Datum* values, bool* nulls, int columns);

// Deletes a row that was locked, or only seen. Without waiting: TM_Ok, or who else has it. `locked`
// may have the row afterwards.
TM_Result try_delete_row(JobTable* table, TupleTableSlot* row, bool wait = false);

}  // namespace pulse
