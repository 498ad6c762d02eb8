// New rows of pulse.job. C code writes the rows and index entries of a plain table itself: planner
// and executor would cost several times as much. Statements write any other (statement_write.hpp).
#pragma once

#include "job/index.hpp"
#include "job/table.hpp"
#include "server/postgres.hpp"

namespace pulse {

constexpr int kNewJobsAtOnce = 500;

struct NewJobs {
  Relation table;
  CommandId command;
  bool is_plain;  // see is_plain_job_table
  JobIndexes indexes;
};

// No session can change the columns of the table until this transaction ends.
void open_new_jobs(NewJobs* jobs);
// Makes the jobs visible to the next statement of the transaction.
void close_new_jobs(NewJobs* jobs);

// The caller gives all values but the index lane. The row is in the present memory context.
HeapTuple form_new_job(NewJobs* jobs, RowValue* job);

// Stores at most kNewJobsAtOnce rows of form_new_job() and adds the stored rows to `results`,
// which may be NULL.
void store_new_jobs(NewJobs* jobs, HeapTuple* rows, int count, Tuplestorestate* results);

// Returns the stored row, as a value of the table's row type.
Datum store_new_job(NewJobs* jobs, HeapTuple row);

}  // namespace pulse
