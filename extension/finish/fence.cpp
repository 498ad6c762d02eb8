#include "finish/fence.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"

namespace pulse {
namespace {

struct Fence {
  int64 job_id;
  int64 token;
  SubTransactionId savepoint;
};

// Elements of type Fence. The memory is TopTransactionContext, so the server frees the list at the
// end of the transaction.
List* fences = NIL;
// Set when a fence found its claim lost. The flag survives the rollback of a savepoint: a caller
// that catches PU001 would otherwise commit the effects of a lost claim.
bool doomed = false;
int64 doomed_job = 0;

[[noreturn]] void raise_lost_claim(int64 job_id, const char* detail) {
  doomed = true;
  doomed_job = job_id;
  ereport(ERROR, (errcode(kClaimLost), errmsg("the claim of job " INT64_FORMAT " is lost", job_id),
                  errdetail_internal("%s", detail),
                  errhint("Roll back: another attempt owns the job, or it has ended.")));
  pg_unreachable();
}

bool token_matches(TupleTableSlot* row, int64 token) {
  NullableDatum stored = field_of(row, kJobToken);
  return !stored.isnull && DatumGetInt64(stored.value) == token;
}

// Whether this transaction itself ended the attempt, so that the fence has nothing to protect.
bool finished_here(Relation job, int64 job_id, int64 token) {
  bool finished = false;
  IndexLookup versions;
  open_index_lookup(&versions, job, catalog()->job_key, SnapshotAny);
  seek_id(&versions, job_id);
  while (!finished && next_row(&versions)) {
    bool should_free;
    HeapTuple tuple = ExecFetchSlotHeapTuple(versions.row, false, &should_free);
    bool ended = !(tuple->t_data->t_infomask & HEAP_XMAX_INVALID) &&
                 !HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_data->t_infomask);
    finished = ended && token_matches(versions.row, token) &&
               TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data));
    if (should_free) heap_freetuple(tuple);
  }
  close_index_lookup(&versions);
  return finished;
}

// Locks the last version of the row, and compares the token. Waits for a transaction that has
// locked the row. If it is a sweep that recovers the job, the token is stale and this transaction
// fails.
bool lock_and_match(Relation job, TupleTableSlot* row, Snapshot snapshot, int64 token) {
  TM_FailureData failure;
  ItemPointerData tid = row->tts_tid;
  TM_Result result = table_tuple_lock(job, &tid, snapshot, row, GetCurrentCommandId(false),
                                      LockTupleNoKeyExclusive, LockWaitBlock,
                                      TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
  return result == TM_Ok && token_matches(row, token);
}

// The reason for a lost claim; NULL when the claim is current.
const char* lost_reason(const Fence& fence, bool lock) {
  CommandCounterIncrement();
  // Locks the table in the mode of a later change: with a weaker lock first, REINDEX could come in
  // between.
  Relation job = table_open(catalog()->job, RowExclusiveLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  IndexLookup jobs;
  open_index_lookup(&jobs, job, catalog()->job_key, snapshot);
  bool found = find_id(&jobs, fence.job_id);
  bool current = found && (lock ? lock_and_match(job, jobs.row, snapshot, fence.token)
                                : token_matches(jobs.row, fence.token));
  close_index_lookup(&jobs);
  const char* reason = nullptr;
  if (!current && !finished_here(job, fence.job_id, fence.token))
    reason = found ? "the token is not that of the job's current claim" : "no live job";
  UnregisterSnapshot(snapshot);
  table_close(job, NoLock);
  return reason;
}

}  // namespace

void check_fences() {
  if (doomed)
    raise_lost_claim(doomed_job, "a fence found the claim lost earlier in this transaction");
  ListCell* cell;
  foreach (cell, fences) {
    auto* fence = static_cast<Fence*>(lfirst(cell));
    if (const char* reason = lost_reason(*fence, true)) raise_lost_claim(fence->job_id, reason);
  }
}

void forget_fences() {
  fences = NIL;
  doomed = false;
}

void drop_fences(SubTransactionId savepoint) {
  ListCell* cell;
  foreach (cell, fences)
    if (static_cast<Fence*>(lfirst(cell))->savepoint == savepoint)
      fences = foreach_delete_current(fences, cell);
}

void hand_up_fences(SubTransactionId savepoint, SubTransactionId parent) {
  ListCell* cell;
  foreach (cell, fences) {
    auto* fence = static_cast<Fence*>(lfirst(cell));
    if (fence->savepoint == savepoint) fence->savepoint = parent;
  }
}

}  // namespace pulse

// pulse.fence(job_id, token): see sql/worker/fence.sql for the contract.
PULSE_FUNCTION(pulse_fence) {
  using pulse::Fence;
  PreventCommandIfReadOnly("fence");
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
    pulse::raise_lost_claim(0, "job_id and token must not be null");
  Fence fence = {PG_GETARG_INT64(0), PG_GETARG_INT64(1), GetCurrentSubTransactionId()};
  if (const char* reason = pulse::lost_reason(fence, false))
    pulse::raise_lost_claim(fence.job_id, reason);
  MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
  pulse::fences = lappend(pulse::fences, memcpy(palloc(sizeof(Fence)), &fence, sizeof(Fence)));
  MemoryContextSwitchTo(old);
  PG_RETURN_VOID();
}

// pulse_internal.fences(): the claims that check_fences() would check now, with the reason for each
// lost claim; takes no lock of a row.
PULSE_FUNCTION(pulse_fences) {
  pulse::begin_result_rows(fcinfo);
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  auto put = [results](int64 job_id, int64 token, const char* fault) {
    Datum values[3] = {Int64GetDatum(job_id), Int64GetDatum(token), 0};
    bool nulls[3] = {false, token == 0, !fault};
    if (fault) values[2] = CStringGetTextDatum(fault);
    tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
  };
  if (pulse::doomed) put(pulse::doomed_job, 0, "it was found lost earlier in this transaction");
  ListCell* cell;
  foreach (cell, pulse::fences) {
    auto* fence = static_cast<pulse::Fence*>(lfirst(cell));
    put(fence->job_id, fence->token, pulse::lost_reason(*fence, false));
  }
  return static_cast<Datum>(0);
}
