#include "job/insert_jobs.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/not_null.hpp"
#include "counters/noted_depths.hpp"
#include "job/statement_write.hpp"
#include "job/table.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

void note_new_job(const RowValue& job) {
  if (job.has(kJobWaitsOn))
    (void)note_parent(DatumGetInt64(job.value(kJobWaitsOn)));
  else
    note_job(DatumGetTextPP(job.value(kJobIdentifier)),
             job.has(kJobQueueName) ? DatumGetTextPP(job.value(kJobQueueName)) : nullptr,
             DatumGetTimestampTz(job.value(kJobRunAt)), DatumGetInt16(job.value(kJobPriority)));
}

void note_depths(const RowValue& job) {
  note_added_job({job.value(kJobIdentifier), job.field(kJobQueueName),
                  DatumGetObjectId(job.value(kJobState)), DatumGetTimestampTz(job.value(kJobRunAt)),
                  job.has(kJobWaitsOn)});
}

// The slots of the executor own and free the rows, which saves a copy.
void store_plain(NewJobs* jobs, HeapTuple* rows, int count) {
  auto** stored = static_cast<TupleTableSlot**>(palloc(sizeof(TupleTableSlot*) * count));
  for (int i = 0; i < count; i++) {
    refuse_nulls(jobs->table, rows[i]);
    stored[i] = MakeSingleTupleTableSlot(RelationGetDescr(jobs->table), &TTSOpsHeapTuple);
    ExecForceStoreHeapTuple(rows[i], stored[i], true);
  }
  if (count == 1)
    table_tuple_insert(jobs->table, stored[0], jobs->command, 0, nullptr);
  else
    table_multi_insert(jobs->table, stored, count, jobs->command, 0, nullptr);
  enter_new_jobs(&jobs->indexes, stored, count);
  for (int i = 0; i < count; i++) ExecDropSingleTupleTableSlot(stored[i]);
}

// Replaces each row by the row that the server stored, which a trigger may have changed.
void store_by_statement(NewJobs* jobs, HeapTuple* rows, int count) {
  insert_by_statement(jobs->table, rows, count,
                      catalog()->has_index_lanes ? kJobColumns : kJobSuperseded);
  RowValue stored;
  memset(stored.nulls, true, sizeof(stored.nulls));
  for (int i = 0; i < count; i++) {
    heap_deform_tuple(rows[i], RelationGetDescr(jobs->table), stored.values, stored.nulls);
    note_new_job(stored);
  }
}

}  // namespace

void open_new_jobs(NewJobs* jobs) {
  jobs->table = table_open(catalog()->job, RowExclusiveLock);
  check_columns(RelationGetDescr(jobs->table), "job");
  // A session may have changed the table while this session waited for the table's lock.
  jobs->is_plain = is_plain_job_table(jobs->table);
  jobs->command = GetCurrentCommandId(true);
  open_job_indexes(&jobs->indexes, jobs->table);
}

void close_new_jobs(NewJobs* jobs) {
  close_job_indexes(&jobs->indexes);
  table_close(jobs->table, NoLock);
  CommandCounterIncrement();
}

HeapTuple form_new_job(NewJobs* jobs, RowValue* job) {
  char lane = index_lane(DatumGetObjectId(job->value(kJobState)), false, job->has(kJobWaitsOn));
  job->set(kJobIndexLane, CharGetDatum(lane));
  if (jobs->is_plain) {
    note_new_job(*job);
    note_depths(*job);
  }
  HeapTuple row = heap_form_tuple(RelationGetDescr(jobs->table), job->values, job->nulls);
  row->t_tableOid = RelationGetRelid(jobs->table);
  return row;
}

void store_new_jobs(NewJobs* jobs, HeapTuple* rows, int count, Tuplestorestate* results) {
  if (!jobs->is_plain) store_by_statement(jobs, rows, count);
  for (int i = 0; results && i < count; i++) tuplestore_puttuple(results, rows[i]);
  if (jobs->is_plain) store_plain(jobs, rows, count);
}

Datum store_new_job(NewJobs* jobs, HeapTuple row) {
  if (!jobs->is_plain) store_by_statement(jobs, &row, 1);
  Datum stored = heap_copy_tuple_as_datum(row, RelationGetDescr(jobs->table));
  if (jobs->is_plain) store_plain(jobs, &row, 1);
  return stored;
}

}  // namespace pulse
