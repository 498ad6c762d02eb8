// New rows of pulse.job. A plain table gets them with their index entries without planner and
// executor, which would cost several times what the table itself costs; any other gets them by
// statements (statement_write.hpp).
#pragma once

#include "job/job_index.hpp"
#include "server/postgres.hpp"

namespace pulse {

constexpr int kNewJobsAtOnce = 500;

struct NewJobs {
  MemoryContext context;
  Relation table;
  CommandId command;
  bool is_plain;  // see is_plain_job_table
  JobIndexes indexes;
  int slots;
  TupleTableSlot* slot[kNewJobsAtOnce];
};

// Until the transaction ends, nobody changes the table's structure.
void open_new_jobs(NewJobs* jobs);
// So that the caller's next statement sees the jobs, as after a statement.
void close_new_jobs(NewJobs* jobs);

// Values are complete but for the lane; the row is in the caller's memory until it is stored.
HeapTuple form_new_job(NewJobs* jobs, Datum* values, bool* nulls);

// Stores rows of form_new_job(), at most kNewJobsAtOnce, and puts what is stored into `results`.
void store_new_jobs(NewJobs* jobs, HeapTuple* rows, int count, Tuplestorestate* results);

// Returns what is stored, as a value of the table's row type.
Datum store_new_job(NewJobs* jobs, HeapTuple row);

}  // namespace pulse
