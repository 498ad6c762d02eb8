// Finishing: the records of an attempt that ended, in pulse.attempt and pulse.finished_job.
#pragma once

#include "job/table.hpp"
#include "server/postgres.hpp"

namespace pulse {

// The first record opens each table, because most completions leave none.
struct AttemptRecords {
  TimestampTz now;
  JobTable attempts;
  JobTable finished;
};

// The values that differ from the row of pulse.job; a NULL keeps the value of pulse.job.
struct FinishedJob {
  Oid state;
  int crashes;
  NullableDatum payload;
  NullableDatum result;
  NullableDatum last_error;
  bool has_lost_key;  // the job has lost its key, and with it all further attempts
};

// Opens no table yet; record_…() opens a table at the first record.
void open_attempt_records(AttemptRecords* records);
void close_attempt_records(AttemptRecords* records);

// Both functions take the row of the job as it was while the attempt ran.
void record_attempt(AttemptRecords* records, TupleTableSlot* row, Datum outcome,
                    const NullableDatum& error);
void record_finished_job(AttemptRecords* records, TupleTableSlot* row, const FinishedJob& job);

}  // namespace pulse
