// Index entries of pulse.job made without planner and executor, which would cost several times what
// the entries themselves cost.
#pragma once

#include "access/catalog.hpp"
#include "job/index_lane.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct JobIndexes {
  MemoryContext context;
  Relation table;
  Relation index[kJobIndexes];  // opened when a job needs it
  IndexInfo* info[kJobIndexes];
};

// Whether this is our table with our columns and indexes only, and asks for no statements
// (statement_write.hpp).
bool is_plain_job_table(Relation table);

// Of a plain table that stays open, in the present memory context.
void open_job_indexes(JobIndexes* indexes, Relation table);
// So far nothing may have been opened.
void close_job_indexes(JobIndexes* indexes);

// Enters rows that were inserted.
void enter_new_jobs(JobIndexes* indexes, TupleTableSlot** rows, int count);

// Enters the new version of a row whose update was no HOT one.
void enter_changed_job(JobIndexes* indexes, TupleTableSlot* row);

}  // namespace pulse
