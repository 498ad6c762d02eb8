#include "finish/attempt_record.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

void insert_record(JobTable* table, Oid table_oid, RowValue* record, int columns) {
  if (!table->relation) open_extension_table(table, table_oid);
  insert_row(table, record->values, record->nulls, columns);
}

}  // namespace

void open_attempt_records(AttemptRecords* records) {
  *records = {};
  records->now = wall_now();
}

void close_attempt_records(AttemptRecords* records) {
  if (records->finished.relation) close_job_table(&records->finished);
  if (records->attempts.relation) close_job_table(&records->attempts);
}

void record_attempt(AttemptRecords* records, TupleTableSlot* row, Datum outcome,
                    const NullableDatum& error) {
  RowValue record;
  record.set(kAttemptJobId, field_of(row, kJobId));
  record.set(kAttemptToken, field_of(row, kJobToken));
  record.set(kAttemptNumber, field_of(row, kJobAttempts));
  record.set(kAttemptWorkerId, field_of(row, kJobWorkerId));
  record.set(kAttemptClaimedAt, field_of(row, kJobClaimedAt));
  record.set(kAttemptEndedAt, TimestampTzGetDatum(records->now));
  record.set(kAttemptOutcome, outcome);
  record.set(kAttemptError, error);
  insert_record(&records->attempts, catalog()->attempt, &record, kAttemptColumns);
}

void record_finished_job(AttemptRecords* records, TupleTableSlot* row, const FinishedJob& job) {
  // The source of each column. Columns without a counterpart in pulse.job get their value below.
  static const JobColumn from[kFinishedDeadLetterOf] = {
      kJobId,          kJobIdentifier,   kJobPayload,     kJobQueueName,   kJobPriority,
      kJobRunAt,       kJobState,        kJobAttempts,    kJobMaxAttempts, kJobCrashes,
      kJobKey,         kJobFlags,        kJobWorkerId,    kJobToken,       kJobClaimedAt,
      kJobCheckpoint,  kJobCheckpoint,   kJobLastError,   kJobRevision,    kJobCreatedAt,
      kJobUpdatedAt,   kJobScheduledFor, kJobStartsWhen,  kJobStartBy,     kJobParents,
      kJobTraceparent, kJobStartBy,      kJobKeepsResult, kJobAddedBy,     kJobParents,
      kJobDeadLetterOf};
  int columns = catalog()->has_index_lanes ? kFinishedDeadLetterOf : kFinishedAt;
  RowValue record;
  for (int i = 0; i < columns; i++) record.set(i + 1, field_of(row, from[i]));
  if (!job.payload.isnull) record.set(kFinishedPayload, job.payload);
  if (!job.last_error.isnull) record.set(kFinishedLastError, job.last_error);
  record.set(kFinishedResult, job.result);
  record.set(kFinishedState, ObjectIdGetDatum(job.state));
  record.set(kFinishedCrashes, Int16GetDatum(job.crashes));
  record.set(kFinishedAt, TimestampTzGetDatum(records->now));
  record.set(kFinishedCancelledBy, kNull);
  record.set(kFinishedBeforeEnd, kNull);
  if (job.state == catalog()->finished_completed) record.set(kFinishedParents, kNull);
  if (job.has_lost_key) {
    record.set(kJobKey, kNull);
    record.set(kJobMaxAttempts, field_of(row, kJobAttempts));
  }
  insert_record(&records->finished, catalog()->finished_job, &record, columns);
}

}  // namespace pulse
