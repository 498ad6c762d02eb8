// A beat locks the last version of the worker's row in pulse.heartbeat before it reads the status.
// So a beat and a sweep that declares the worker lost agree: the sweep sees the beat, or the beat
// waits and returns the new status. The beat writes a new version of the row. No planner takes
// part, because 1,000 idle workers beat all the time; sql/worker/heartbeat.sql answers for jobs.
#include "liveness/heartbeat.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "job/task_settings.hpp"
#include "liveness/clock.hpp"
#include "server/advisory_lock.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "wake/async_commit.hpp"
#include "wake/wait_for_job.hpp"

namespace pulse {
namespace {

// --- the row ------------------------------------------------------------------------------------

void take_snapshot(JobTable* beats, Snapshot snapshot) {
  UnregisterSnapshot(beats->snapshot);
  beats->snapshot = RegisterSnapshot(snapshot);
}

// A transaction with one snapshot for all statements uses this snapshot, as an UPDATE does.
void open_beats(JobTable* beats) {
  open_extension_table(beats, catalog()->heartbeat);
  check_columns(RelationGetDescr(beats->relation), "heartbeat");
  if (IsolationUsesXactSnapshot()) take_snapshot(beats, GetTransactionSnapshot());
}

// Locks the last version of the row. False when the row is deleted. False for LockWaitSkip also
// when another transaction has locked the row, or has changed it since the transaction's only
// snapshot.
bool lock_last_version(JobTable* beats, ItemPointerData seen, LockWaitPolicy wait) {
  TM_FailureData failure;
  uint8 flags = IsolationUsesXactSnapshot() ? 0 : TUPLE_LOCK_FLAG_FIND_LAST_VERSION;
  TM_Result result =
      table_tuple_lock(beats->relation, &seen, beats->snapshot, beats->locked,
                       GetCurrentCommandId(false), LockTupleNoKeyExclusive, wait, flags, &failure);
  if (result != TM_Ok && wait == LockWaitSkip) return false;
  if (result != TM_Ok && IsolationUsesXactSnapshot())
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not serialize access due to concurrent update")));
  if (result == TM_Deleted) return false;
  if (result != TM_Ok) elog(ERROR, "could not lock a heartbeat: %d", result);
  if (!IsolationUsesXactSnapshot()) take_snapshot(beats, GetLatestSnapshot());
  return true;
}

int64 number_in(TupleTableSlot* row, int column) { return DatumGetInt64(value_of(row, column)); }

void set_moment(JobChange* beat) {
  beat->set(kBeatLive, Int64GetDatum(live_now_us()));
  beat->set(kBeatLastHeartbeatAt, TimestampTzGetDatum(wall_now()));
}

// A beat from a session other than the attached session detaches the worker; then its silence
// counts.
void set_attachment(JobChange* beat, TupleTableSlot* row) {
  beat->clear(kBeatDetachedLive);
  if (!slot_attisnull(row, kBeatAttachment) &&
      !holds_attachment(static_cast<uint64>(number_in(row, kBeatAttachment))))
    beat->clear(kBeatAttachment);
}

// The default_timeout of this session; -1: none.
int64 default_timeout_us() {
  return settings.default_timeout_ms < 0 ? -1 : settings.default_timeout_ms * INT64CONST(1000);
}

int64 default_timeout_in(TupleTableSlot* row) {
  return slot_attisnull(row, kBeatDefaultTimeout) ? -1 : number_in(row, kBeatDefaultTimeout);
}

void set_default_timeout(JobChange* beat) {
  if (!catalog()->has_index_lanes) return;
  if (default_timeout_us() < 0)
    beat->clear(kBeatDefaultTimeout);
  else
    beat->set(kBeatDefaultTimeout, Int64GetDatum(default_timeout_us()));
}

using Condition = bool (*)(TupleTableSlot* row);
bool always(TupleTableSlot*) { return true; }

bool lives(TupleTableSlot* row) { return !status_is(row, "lost") && !status_is(row, "stopped"); }

// Locks the row of a worker that has not ended, if `reason` holds for the row in the snapshot.
// False: no row locked, or the worker has ended.
bool lock_living(JobTable* beats, int64 worker_id, LockWaitPolicy wait, Condition reason) {
  IndexLookup rows;
  open_index_lookup(&rows, beats->relation, catalog()->heartbeat_key, beats->snapshot);
  bool is_locked = find_id(&rows, worker_id) && reason(rows.row) &&
                   lock_last_version(beats, rows.row->tts_tid, wait);
  bool is_living = is_locked && lives(beats->locked);
  close_index_lookup(&rows);
  return is_living;
}

// --- the news for the worker --------------------------------------------------------------------

// Whether the index, whose first column is the worker, has an entry of this worker.
bool has_row(Oid table_oid, Oid Catalog::*index, int64 worker_id, Snapshot snapshot) {
  Relation table = table_open(table_oid, AccessShareLock);
  IndexLookup rows;
  open_index_lookup(&rows, table, catalog()->*index, snapshot);
  bool found = find_id(&rows, worker_id);
  close_index_lookup(&rows);
  table_close(table, AccessShareLock);
  return found;
}

bool has_no_jobs(int64 worker_id, Snapshot snapshot) {
  return !has_row(catalog()->job, &Catalog::job_running_idx, worker_id, snapshot) &&
         !has_row(catalog()->claim_batch, &Catalog::claim_batch_idx, worker_id, snapshot);
}

// The first transaction whose changes the last beat of this session may have missed.
TransactionId first_unseen = InvalidTransactionId;

TransactionId writer_of(TupleTableSlot* row) {
  return HeapTupleHeaderGetXmin(ExecFetchSlotHeapTuple(row, false, nullptr)->t_data);
}

// Whether a task has changed, perhaps because it has lost its handler. A transaction may commit a
// change long after the moment that the row names, so this session's last beat counts too.
bool tasks_changed(TimestampTz since, Snapshot snapshot) {
  return any_task(snapshot, [since](TupleTableSlot* row) {
    return DatumGetTimestampTz(value_of(row, kTaskUpdatedAt)) > since ||
           (TransactionIdIsValid(first_unseen) &&
            TransactionIdFollowsOrEquals(writer_of(row), first_unseen));
  });
}

void report_changed_handlers() {
  ereport(NOTICE, (errcode(kHandlersChanged), errmsg("tasks with a handler have changed"),
                   errhint("pulse.handler_tasks() lists them.")));
}

// --- answering ----------------------------------------------------------------------------------

TupleDesc answer_shape() {
  static TupleDesc shape = nullptr;
  if (shape) return shape;
  MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
  TupleDesc made = CreateTemplateTupleDesc(3);
  TupleDescInitEntry(made, 1, "status", TEXTOID, -1, 0);
  TupleDescInitEntry(made, 2, "revoked", INT8ARRAYOID, -1, 0);
  TupleDescInitEntry(made, 3, "cancelled", INT8ARRAYOID, -1, 0);
  shape = BlessTupleDesc(made);
  MemoryContextSwitchTo(old);
  return shape;
}

Datum answer(Datum status, Datum revoked) {
  Datum values[] = {status, revoked, PointerGetDatum(construct_empty_array(INT8OID))};
  bool nulls[] = {false, false, false};
  return HeapTupleGetDatum(heap_form_tuple(answer_shape(), values, nulls));
}

Datum no_jobs() { return PointerGetDatum(construct_empty_array(INT8OID)); }

// The answer of a function in sql/worker/heartbeat.sql with the same arguments.
Datum sql_answer(const char* name, FunctionCallInfo original) {
  Oid* types;
  int count;
  (void)get_func_signature(original->flinfo->fn_oid, &types, &count);
  FmgrInfo function;
  fmgr_info(internal_function(name, count, types), &function);
  LOCAL_FCINFO(call, FUNC_MAX_ARGS);
  InitFunctionCallInfoData(*call, &function, original->nargs, InvalidOid, nullptr, nullptr);
  memcpy(call->args, original->args, sizeof(NullableDatum) * original->nargs);
  Datum result = FunctionCallInvoke(call);
  original->isnull = call->isnull;
  return result;
}

bool names_jobs(FunctionCallInfo call) {
  return !call->args[1].isnull && ARR_NDIM(DatumGetArrayTypeP(call->args[1].value)) > 0;
}

// A worker that has ended or is unknown must stop every job that it names.
Datum answer_lost(FunctionCallInfo call) {
  if (catalog()->has_index_lanes) return sql_answer("answer_lost", call);
  return answer(CStringGetTextDatum("lost"),
                call->args[1].isnull ? no_jobs() : call->args[1].value);
}

Datum heartbeat(int64 worker_id, FunctionCallInfo call) {
  JobTable beats;
  open_beats(&beats);
  if (!lock_living(&beats, worker_id, LockWaitBlock, always)) {
    close_job_table(&beats);
    offer_sweep();
    return answer_lost(call);
  }
  TupleTableSlot* row = beats.locked;
  Datum status = datumCopy(value_of(row, kBeatStatus), false, -1);
  int64 interval_us = number_in(row, kBeatInterval);
  bool is_about_jobs = names_jobs(call) || !slot_attisnull(row, kBeatMissingJobIds) ||
                       !has_no_jobs(worker_id, beats.snapshot);
  // Beats of another session, or of a pooled one, tell of a changed task for two intervals.
  bool has_news = tasks_changed(wall_now() - 2 * interval_us, beats.snapshot);
  note_seen_tasks(beats.snapshot);
  JobChange beat = {};
  set_moment(&beat);
  set_attachment(&beat, row);
  update_locked_row(&beats, &beat);
  close_job_table(&beats);
  CommandCounterIncrement();
  offer_sweep();
  if (has_news) report_changed_handlers();
  return is_about_jobs ? sql_answer("answer_for_jobs", call) : answer(status, no_jobs());
}

}  // namespace

bool status_is(TupleTableSlot* beat, const char* expected) {
  return text_is(value_of(beat, kBeatStatus), expected);
}

void note_seen_tasks(Snapshot snapshot) { first_unseen = snapshot->xmin; }

bool beat_is_due(TupleTableSlot* row) {
  int64 interval_us = number_in(row, kBeatInterval);
  return interval_us > 0 && !IsTransactionBlock() &&
         live_now_us() - number_in(row, kBeatLive) > interval_us / 2;
}

bool claim_beat_is_due(TupleTableSlot* row) {
  return beat_is_due(row) ||
         (catalog()->has_index_lanes && default_timeout_in(row) != default_timeout_us());
}

void beat_beside(int64 worker_id, Condition reason) {
  begin_async_write();
  JobTable beats;
  open_beats(&beats);
  bool is_beating = lock_living(&beats, worker_id, LockWaitSkip, reason);
  if (is_beating) {
    JobChange beat = {};
    set_moment(&beat);
    if (reason == claim_beat_is_due) set_default_timeout(&beat);
    update_locked_row(&beats, &beat);
  }
  close_job_table(&beats);
  end_async_write();
  if (is_beating) CommandCounterIncrement();
}

}  // namespace pulse

// pulse.heartbeat(worker_id, job_ids): see sql/worker/heartbeat.sql for the contract.
PULSE_FUNCTION(pulse_heartbeat) {
  PreventCommandIfReadOnly("heartbeat");
  pulse::warn_in_block("heartbeat");
  if (PG_ARGISNULL(0)) return pulse::answer_lost(fcinfo);
  pulse::begin_async_write();
  Datum answer = pulse::heartbeat(PG_GETARG_INT64(0), fcinfo);
  pulse::end_async_write();
  return answer;
}

// pulse_internal.beat_beside(worker_id): the beat of a call with another purpose.
PULSE_FUNCTION(pulse_beat_beside) {
  pulse::beat_beside(PG_GETARG_INT64(0));
  PG_RETURN_BOOL(true);
}
