// Writes of pulse.job and of the other tables that C code writes. A caller locks a row or skips it,
// then updates or deletes it. This file alone decides how the row is written.
//
// A plain table has only the triggers, rules, indexes and columns of this extension. C code writes
// its rows and index entries without planner and executor. Statements write the rows of any other
// table (statement_write.hpp), so the triggers, rules and indexes of a DBA see each row. A caller
// uses the same functions for plain and other tables, but must know about the others:
// - a trigger may raise an error or change the row; `changed` has the row as stored;
// - a suppressed row raises an error (SQLSTATE 09000), so a write that returns has happened;
// - the server computes the generated columns; JobChange::set_state does so for a plain table.
#pragma once

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/index.hpp"
#include "server/compat.hpp"
#include "server/postgres.hpp"
#include "server/values.hpp"

namespace pulse {

struct JobTable {
  MemoryContext context;  // of all that the functions below make on demand
  Relation relation;
  Snapshot snapshot;
  bool is_job;    // pulse.job, whose index entries JobIndexes makes
  bool is_plain;  // C code writes the rows directly
  JobIndexes indexes;
  EState* estate;  // for index entries of a plain table other than pulse.job
  ResultRelInfo* result;
  TupleTableSlot* locked;   // the row that was locked last
  TupleTableSlot* changed;  // the row that was inserted or updated last, as stored
};

// The most columns of a table of the extension, with space for columns that a DBA adds.
constexpr int kMaxColumns = 48;

// The values of a row, with columns numbered from 1.
struct RowValue {
  Datum values[kMaxColumns];
  bool nulls[kMaxColumns];

  bool has(int column) const { return !nulls[column - 1]; }
  Datum value(int column) const { return values[column - 1]; }
  NullableDatum field(int column) const { return {values[column - 1], nulls[column - 1]}; }
  void set(int column, const NullableDatum& field) {
    values[column - 1] = field.value;
    nulls[column - 1] = field.isnull;
  }
  void set(int column, Datum value) { set(column, NullableDatum{value, false}); }
};

// The columns that an update changes.
struct JobChange : RowValue {
  bool replaces[kMaxColumns];

  void set(int column, Datum value) {
    RowValue::set(column, value);
    replaces[column - 1] = true;
  }
  void clear(int column) {
    nulls[column - 1] = true;
    replaces[column - 1] = true;
  }
  void set_waiting(Oid state) { set_state(state, false, 0); }
  // The job is parked outside of the indexes of parked jobs and of waiting keys.
  void set_undecided() {
    set_waiting(catalog()->state_parked);
    set(kJobKeyIsUndecided, BoolGetDatum(true));
    set(kJobIndexLane, CharGetDatum(kLaneUndecided));
  }
  // A claim in place keeps the index lane of open jobs, so it changes no indexed column.
  void set_running(int64 worker_id, bool is_in_place) {
    set(kJobWorkerId, Int64GetDatum(worker_id));
    set_state(catalog()->state_running, is_in_place, worker_id);
  }
  // Sets the generated columns too, because the server does not compute them for a direct write.
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

inline NullableDatum field_of(TupleTableSlot* row, int column) {
  NullableDatum field;
  field.value = slot_getattr(row, column, &field.isnull);
  return field;
}

// Asks the null bitmap alone, so a column that is seldom set costs nothing where it is NULL.
inline bool has_field(TupleTableSlot* row, int column) {
  bool should_free;
  return !heap_attisnull(ExecFetchSlotHeapTuple(row, false, &should_free), column, nullptr);
}

// The first claim must come by then.
inline bool has_start_by(TupleTableSlot* row) { return has_field(row, kJobStartBy); }

// Reads a row of pulse.<table>.
void read_row_value(RowValue* row, HeapTupleHeader header, const char* table);

// The shape of a value of the composite type pulse.<type>, which the caller releases. Raises unless
// the type has this many attributes.
TupleDesc shape_of_type(HeapTupleHeader value, const char* type, int attributes);

// Calls use(row) with the first row that has this text in the first column of the index, if there
// is a row.
template <typename Use>
void with_row_of_text(Relation table, Oid index_oid, Datum value, Snapshot snapshot, Use use) {
  IndexLookup rows;
  open_index_lookup(&rows, table, index_oid, snapshot, 1);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, value);
  seek_keys(&rows, &key);
  if (next_row(&rows)) use(rows.row);
  close_index_lookup(&rows);
}

// Opens the table in the present memory context. The new snapshot of the table shows the rows that
// other transactions committed and that the present transaction wrote.
void open_job_table(JobTable* table);
void close_job_table(JobTable* table);

// Gives the open table a new snapshot.
void take_new_snapshot(JobTable* table);

// Raises for a table with more than kMaxColumns columns.
void check_columns(TupleDesc shape, const char* name);

// Like open_job_table, for another table of the extension, which has no generated columns.
void open_extension_table(JobTable* table, Oid relation);

// Whether another transaction in progress has locked or changed the row. The function takes no lock
// and costs a twentieth of a refused lock. `known` keeps the transaction's id from row to row.
bool is_locked_by_other(TupleTableSlot* seen, TransactionId* known);

// The other transaction whose lock makes claims step over the row; InvalidTransactionId: none.
TransactionId locker_of(TupleTableSlot* seen);

// Locks the row version that the snapshot shows. A foreign key of others refers to the row under a
// lock that conflicts with LockTupleExclusive, the lock of a delete.
TM_Result lock_row(JobTable* table, const ItemPointerData& seen, LockWaitPolicy policy,
                   LockTupleMode mode = LockTupleNoKeyExclusive);

// Locks the row version without waiting. False when another transaction has locked or changed the
// row; that transaction handles it.
bool try_lock_row(JobTable* table, const ItemPointerData& seen);

// Updates the row that was locked last, and makes index entries unless the update is HOT. In
// pulse.job, an update that changes an indexed column must change the index lane.
void update_locked_row(JobTable* table, JobChange* change);

// Inserts a row into a table opened by open_extension_table. `values` has the first `columns`
// columns; the rest get their defaults. (insert_jobs.hpp inserts jobs.)
void insert_row(JobTable* table, Datum* values, bool* nulls, int columns);

// Deletes a row that the caller has locked or only read. Without `wait` the function returns
// TM_BeingModified for a row that a transaction has locked. May put the row into `locked`.
TM_Result try_delete_row(JobTable* table, TupleTableSlot* row, bool wait = false);

}  // namespace pulse
