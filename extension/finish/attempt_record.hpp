// What is written of an attempt that ended: its row of the audit, and the job that ended with it.
#pragma once

#include "job/job_table.hpp"
#include "server/postgres.hpp"

namespace pulse {

// The tables are opened when a row comes, because most completions leave none.
struct AttemptRecords {
  TimestampTz now;
  bool has_attempts;
  bool has_finished;
  JobTable attempts;
  JobTable finished;
};

// What is not as it was in pulse.job; a NULL leaves what was.
struct FinishedJob {
  Oid state;
  int crashes;
  NullableDatum payload;
  NullableDatum result;
  NullableDatum last_error;
};

void open_attempt_records(AttemptRecords* records);
void close_attempt_records(AttemptRecords* records);

// Both take the row of the job as it ran.
void record_attempt(AttemptRecords* records, TupleTableSlot* row, Datum outcome,
                    const NullableDatum& error);
void record_finished_job(AttemptRecords* records, TupleTableSlot* row, const FinishedJob& job);

}  // namespace pulse
