#include "claim/claimed_job.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "claim/token.hpp"
#include "counters/noted_attempts.hpp"
#include "liveness/clock.hpp"
#include "liveness/heartbeat.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/queue_name.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// The source of each column of a claimed job: a column of pulse.job, or a setting of the job's
// task.
enum TaskValue { kTimeout = -4, kStallTimeout, kOnUnreachable, kHandler };

constexpr int kSources[kClaimedColumns] = {
    kJobId,         kJobToken,     kJobIdentifier,   kJobPayload, kJobQueueName,  kJobPriority,
    kJobRunAt,      kJobAttempts,  kJobMaxAttempts,  kJobCrashes, kJobKey,        kJobFlags,
    kJobCheckpoint, kJobLastError, kJobRecovered,    kTimeout,    kStallTimeout,  kOnUnreachable,
    kHandler,       kJobCreatedAt, kJobScheduledFor, kJobParents, kJobTraceparent};

NullableDatum task_value(const TaskSettings& task, int which) {
  switch (which) {
    case kTimeout: return task.timeout;
    case kStallTimeout: return task.stall_timeout;
    case kOnUnreachable: return task.on_unreachable;
    default: return task.handler;
  }
}

// A claim of a job within a level with a rate takes a token of the level. The claim charges it if
// the claim has promoted jobs in this level; else the next promotion does.
void note_claimed_place(TupleTableSlot* row, KnownLevel* known) {
  DatabaseState* database = this_database();
  uint64 rated = database ? pg_atomic_read_u64(&database->rated_levels) : 0;
  if (!rated || slot_attisnull(row, kJobQueueName)) return;
  const text* name = DatumGetTextPP(value_of(row, kJobQueueName));
  QueuePlace place = place_in_queue(name);
  if (!(place.level_groups & rated)) return;
  bool is_charged = charge_claim(known, name, rated);
  // Where open jobs had filled a dry level, a promotion can tell only now when the level has a
  // token again.
  uint64 waiting = pg_atomic_read_u64(&database->waiting_levels);
  if (!is_charged || (place.level_groups & waiting)) note_place_freed(place);
}

Datum claim_by_id(int64 job_id, int64 worker_id) {
  ClaimStamp stamp = {worker_id, next_token(), wall_now(), live_now_us()};
  JobTable table;
  IndexLookup jobs;
  open_job_table(&table);
  open_index_lookup(&jobs, table.relation, catalog()->job_key, table.snapshot);
  if (!find_id(&jobs, job_id) || !try_lock_row(&table, jobs.row->tts_tid))
    elog(ERROR, "job " INT64_FORMAT " is not locked by its claim", job_id);
  claim_locked_row(&table, stamp, false, nullptr);
  bool should_free;
  HeapTuple row = ExecFetchSlotHeapTuple(table.changed, false, &should_free);
  Datum claimed = heap_copy_tuple_as_datum(row, RelationGetDescr(table.relation));
  close_index_lookup(&jobs);
  close_job_table(&table);
  CommandCounterIncrement();
  beat_beside(worker_id, claim_beat_is_due);
  return claimed;
}

}  // namespace

void claim_locked_row(JobTable* table, const ClaimStamp& stamp, bool is_in_place,
                      KnownLevel* known) {
  Assert(holds_advisory_lock(LockKind::kWorker, static_cast<uint64>(stamp.worker_id), ShareLock));
  int attempts = int2_of(table->locked, kJobAttempts);
  JobChange change = {};
  change.set_running(stamp.worker_id, is_in_place);
  change.set(kJobAttempts, Int16GetDatum(attempts + 1));
  change.set(kJobToken, Int64GetDatum(stamp.token));
  change.set(kJobClaimedAt, TimestampTzGetDatum(stamp.now));
  change.set(kJobLastActivityAt, TimestampTzGetDatum(stamp.now));
  change.set(kJobClaimedLive, Int64GetDatum(stamp.live_now));
  change.set(kJobActivityLive, Int64GetDatum(stamp.live_now));
  change.clear(kJobStage);
  change.clear(kJobProgress);
  change.clear(kJobMessage);
  if (has_start_by(table->locked)) change.clear(kJobStartBy);
  update_locked_row(table, &change);
  note_claimed_place(table->changed, known);
  note_start(table->changed);
}

void read_claimed(const Datum* job, const bool* job_nulls, const TaskSettings& task, Datum* values,
                  bool* nulls) {
  int from = claimed_from();
  for (int i = 0; i < kClaimedColumns; i++) {
    int source = kSources[i];
    nulls[i] = source > from;
    if (nulls[i]) continue;
    NullableDatum value = source > 0 ? NullableDatum{job[source - 1], job_nulls[source - 1]}
                                     : task_value(task, source);
    values[i] = value.value;
    nulls[i] = value.isnull;
  }
}

}  // namespace pulse

// pulse_internal.take_job(job, worker_id): claims a job that the caller has locked.
PULSE_FUNCTION(pulse_take_job) {
  pulse::RowValue job;
  pulse::read_row_value(&job, pulse::header_of(PG_GETARG_DATUM(0)), "job");
  PG_RETURN_DATUM(pulse::claim_by_id(DatumGetInt64(job.value(pulse::kJobId)), PG_GETARG_INT64(1)));
}

// pulse_internal.as_claimed(job): the row that the worker gets.
PULSE_FUNCTION(pulse_as_claimed) {
  pulse::RowValue job;
  pulse::read_row_value(&job, pulse::header_of(PG_GETARG_DATUM(0)), "job");
  TupleDesc shape;
  if (get_call_result_type(fcinfo, nullptr, &shape) != TYPEFUNC_COMPOSITE ||
      (shape->natts != pulse::kClaimedColumns && shape->natts != pulse::kClaimedColumnsIn010))
    elog(ERROR, "type pulse.claimed_job is not as it was made");
  Datum values[pulse::kClaimedColumns];
  bool nulls[pulse::kClaimedColumns];
  pulse::TaskSettings task =
      pulse::task_settings(job.value(pulse::kJobIdentifier), GetActiveSnapshot());
  pulse::read_claimed(job.values, job.nulls, task, values, nulls);
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(shape), values, nulls)));
}
