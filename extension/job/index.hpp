// Index entries of pulse.job. C code makes them without planner and executor, which would cost
// several times as much as the entries themselves.
//
// sql/structure/tables.sql defines which indexes have an entry of a job, by two generated columns
// and the predicates of the indexes. index.cpp repeats the rule for rows that C code writes
// directly. test/pgtap/index_lane.sql compares both for every job state.
#pragma once

#include "access/catalog.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct JobIndexes {
  MemoryContext context;
  Relation table;
  Relation index[kJobIndexes];  // opened when a job needs the index
  IndexInfo* info[kJobIndexes];
};

// The value of the generated column. The column running_worker_id is set in kLaneRunning only.
char index_lane(Oid state, bool is_in_place, bool waits = false, bool is_undecided = false);

// Whether the table has the extension's columns only, beside columns that were added and dropped.
bool has_only_columns(Relation table, int count);

// Whether the table has the extension's columns and indexes only, and needs no statements
// (statement_write.hpp).
bool is_plain_job_table(Relation table);

// The table must be plain and stay open. Allocates in the present memory context.
void open_job_indexes(JobIndexes* indexes, Relation table);
// Closes the indexes that were opened, if any.
void close_job_indexes(JobIndexes* indexes);

// Makes the entries of inserted rows.
void enter_new_jobs(JobIndexes* indexes, TupleTableSlot** rows, int count);

// Makes the entries of a new row version whose update was not HOT.
void enter_changed_job(JobIndexes* indexes, TupleTableSlot* row);

}  // namespace pulse
