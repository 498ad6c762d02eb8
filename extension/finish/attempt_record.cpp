#include "finish/attempt_record.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

JobTable* open_on_demand(RecordTable* records, Oid table) {
  if (!records->is_open) open_extension_table(&records->table, table);
  records->is_open = true;
  return &records->table;
}

}  // namespace

void open_attempt_records(AttemptRecords* records) {
  records->now = wall_now();
  records->attempts.is_open = records->finished.is_open = false;
}

void close_attempt_records(AttemptRecords* records) {
  if (records->finished.is_open) close_job_table(&records->finished.table);
  if (records->attempts.is_open) close_job_table(&records->attempts.table);
}

void record_attempt(AttemptRecords* records, TupleTableSlot* row, Datum outcome,
                    const NullableDatum& error) {
  static const JobColumn from[] = {kJobId, kJobToken, kJobAttempts, kJobWorkerId, kJobClaimedAt};
  Datum values[kAttemptColumns];
  bool nulls[kAttemptColumns] = {};
  for (int i = 0; i < static_cast<int>(lengthof(from)); i++)
    values[i] = slot_getattr(row, from[i], &nulls[i]);
  values[kAttemptEndedAt] = TimestampTzGetDatum(records->now);
  values[kAttemptOutcome] = outcome;
  values[kAttemptError] = error.value;
  nulls[kAttemptError] = error.isnull;
  insert_row(open_on_demand(&records->attempts, catalog()->attempt), values, nulls,
             kAttemptColumns);
}

void record_finished_job(AttemptRecords* records, TupleTableSlot* row, const FinishedJob& job) {
  static const JobColumn from[kFinishedColumns] = {
      kJobId,       kJobIdentifier, kJobPayload,     kJobQueueName,  kJobPriority,   kJobRunAt,
      kJobState,    kJobAttempts,   kJobMaxAttempts, kJobCrashes,    kJobKey,        kJobFlags,
      kJobWorkerId, kJobToken,      kJobClaimedAt,   kJobCheckpoint, kJobCheckpoint, kJobLastError,
      kJobRevision, kJobCreatedAt,  kJobUpdatedAt};
  Datum values[kFinishedColumns];
  bool nulls[kFinishedColumns];
  for (int i = 0; i < kFinishedColumns; i++) values[i] = slot_getattr(row, from[i], &nulls[i]);
  auto put = [&](FinishedColumn column, const NullableDatum& value) {
    if (value.isnull) return;
    values[column] = value.value;
    nulls[column] = false;
  };
  nulls[kFinishedResult] = true;
  put(kFinishedResult, job.result);
  put(kFinishedPayload, job.payload);
  put(kFinishedLastError, job.last_error);
  values[kFinishedState] = ObjectIdGetDatum(job.state);
  values[kFinishedCrashes] = Int16GetDatum(job.crashes);
  values[kFinishedAt] = TimestampTzGetDatum(records->now);
  insert_row(open_on_demand(&records->finished, catalog()->finished_job), values, nulls,
             kFinishedColumns);
}

}  // namespace pulse
