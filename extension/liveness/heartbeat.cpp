// pulse.heartbeat: most beats are of workers that hold nothing and of which nobody asks anything.
// They are made here, without planner and plans: each is the first thing that its session does for
// seconds, so what counts is how much memory it touches. The moment is overwritten in the row, as
// it is true whatever becomes of the transaction. Before anything is changed, every other beat is
// left to _heartbeat_in_full (sql/heartbeat.sql).
#include "liveness/heartbeat.hpp"

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "access/slow_path.hpp"
#include "job/job_table.hpp"
#include "job/task_row.hpp"
#include "liveness/inplace_update.hpp"
#include "liveness/liveness_clock.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/transaction_checks.hpp"
#include "server/values.hpp"
#include "wake/async_commit.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/wait_for_job.hpp"

namespace pulse {
namespace {

// More than any heartbeat row without missing jobs.
constexpr Size kRoomForBeat = 256;

// --- looking ------------------------------------------------------------------------------------

// Stores the version of a row that the snapshot shows, of those that begin there. A scan would
// prune the page at each visit, because it is filled beyond its fillfactor by beats alone, and ask
// all sessions first what they may see: a quarter of a beat. Here a page is pruned when it is full.
bool fetch_version(Relation table, ItemPointerData tid, Snapshot snapshot, TupleTableSlot* row) {
  Buffer buffer = ReadBuffer(table, ItemPointerGetBlockNumber(&tid));
  if (PageGetHeapFreeSpace(BufferGetPage(buffer)) < kRoomForBeat)
    heap_page_prune_opt(table, buffer);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  HeapTuple tuple = &reinterpret_cast<BufferHeapTupleTableSlot*>(row)->base.tupdata;
  bool found = heap_hot_search_buffer(&tid, table, buffer, snapshot, tuple, nullptr, true);
  LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
  if (!found) {
    ReleaseBuffer(buffer);
    return false;
  }
  tuple->t_self = tid;
  ExecStorePinnedBufferHeapTuple(tuple, row, buffer);
  row->tts_tableOid = RelationGetRelid(table);
  return true;
}

bool find_beat(Relation table, int64 worker_id, Snapshot snapshot, TupleTableSlot* row) {
  IndexLookup beats;
  open_index_lookup(&beats, table, catalog()->heartbeat_key, snapshot);
  seek_id(&beats, worker_id);
  bool found = false;
  ItemPointer tid;
  while (!found && (tid = index_getnext_tid(beats.scan, ForwardScanDirection)))
    found = fetch_version(table, *tid, snapshot, row);
  if (found) pgstat_count_heap_fetch(beats.index);
  close_index_lookup(&beats);
  return found;
}

// Whether this index, which begins with workers, has a row of this one.
bool has_row(Oid table_oid, Oid index, int64 worker_id, Snapshot snapshot) {
  Relation table = table_open(table_oid, AccessShareLock);
  IndexLookup rows;
  open_index_lookup(&rows, table, index, snapshot);
  bool found = find_id(&rows, worker_id);
  close_index_lookup(&rows);
  table_close(table, AccessShareLock);
  return found;
}

// Whether a task got its handler, or another, after this.
bool handlers_changed_since(TimestampTz moment, Snapshot snapshot) {
  Relation table = table_open(catalog()->task, AccessShareLock);
  TupleTableSlot* row = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  bool found = false;
  while (!found && table_scan_getnextslot(scan, ForwardScanDirection, row)) {
    CHECK_FOR_INTERRUPTS();
    bool isnull;
    (void)slot_getattr(row, kTaskHandler, &isnull);
    found = !isnull && DatumGetTimestampTz(slot_getattr(row, kTaskUpdatedAt, &isnull)) > moment;
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  table_close(table, AccessShareLock);
  return found;
}

bool is_null(TupleTableSlot* row, int column) {
  bool isnull;
  slot_getattr(row, column, &isnull);
  return isnull;
}

// What somebody hung on the table is theirs, and gets what a statement would give it.
bool is_plain(Relation table) {
  TupleConstr* constraints = RelationGetDescr(table)->constr;
  return table->rd_rel->relam == HEAP_TABLE_AM_OID &&
         RelationGetNumberOfAttributes(table) == kBeatMissingTokens && !table->trigdesc &&
         !table->rd_rules && !table->rd_rel->relrowsecurity && !table->rd_rel->relhassubclass &&
         (!constraints || (constraints->num_check == 0 && !constraints->has_generated_stored));
}

bool holds_nothing(int64 worker_id, Snapshot snapshot) {
  const Catalog* known = catalog();
  return !has_row(known->job, known->job_running_idx, worker_id, snapshot) &&
         !has_row(known->claim_batch, known->claim_batch_idx, worker_id, snapshot);
}

bool is_asked_nothing(TupleTableSlot* beat, Snapshot snapshot) {
  bool isnull;
  int64 interval_us = DatumGetInt64(slot_getattr(beat, kBeatInterval, &isnull));
  return status_is(beat, "alive") && is_null(beat, kBeatMissingJobIds) &&
         !handlers_changed_since(wall_now() - 2 * interval_us, snapshot);
}

// --- beating ------------------------------------------------------------------------------------

// 0: none.
uint64 attachment_of(TupleTableSlot* beat) {
  bool isnull;
  Datum attachment = slot_getattr(beat, kBeatAttachment, &isnull);
  return isnull ? 0 : static_cast<uint64>(DatumGetInt64(attachment));
}

// Another session than the attached one beats, or a sweep has found the attached one gone.
bool is_to_detach(TupleTableSlot* beat) {
  uint64 attachment = attachment_of(beat);
  bool is_anothers = attachment != 0 && !holds_attachment(attachment);
  return is_anothers || !is_null(beat, kBeatDetachedLive);
}

// False when the row that was seen is not the last one, or is held: the status may be in its
// successor. Not for a client's block: tests turn the clock in one, and roll it back.
bool overwrite_moment(Relation table, TupleTableSlot* seen) {
  FixedColumn moment[] = {{kBeatLive, live_now_us()}, {kBeatLastHeartbeatAt, wall_now()}};
  return overwrite_row(table, seen, moment, lengthof(moment));
}

// False when somebody holds the row.
bool update_moment(JobTable* table, TupleTableSlot* seen) {
  if (!try_lock_row(table, seen->tts_tid)) return false;
  JobChange change = {};
  change.set(kBeatLive, Int64GetDatum(live_now_us()));
  change.set(kBeatLastHeartbeatAt, TimestampTzGetDatum(wall_now()));
  update_locked_row(table, &change);
  return true;
}

// Whether this was a beat of a worker that holds nothing; else nothing was done.
bool look_and_beat(int64 worker_id) {
  JobTable table;
  open_extension_table(&table, catalog()->heartbeat);
  bool is_done = is_plain(table.relation) &&
                 find_beat(table.relation, worker_id, table.snapshot, table.locked) &&
                 is_asked_nothing(table.locked, table.snapshot) && !is_to_detach(table.locked) &&
                 holds_nothing(worker_id, table.snapshot) &&
                 overwrite_moment(table.relation, table.locked);
  close_job_table(&table);
  return is_done;
}

bool beat_idle(int64 worker_id) {
  if (in_client_block() || XactReadOnly || IsolationUsesXactSnapshot() || RecoveryInProgress())
    return false;
  bool is_done = look_and_beat(worker_id);
  if (is_done) offer_sweep();
  return is_done;
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

Datum alive() {
  Datum none = PointerGetDatum(construct_empty_array(INT8OID));
  Datum values[] = {CStringGetTextDatum("alive"), none, none};
  bool nulls[] = {false, false, false};
  return HeapTupleGetDatum(heap_form_tuple(answer_shape(), values, nulls));
}

}  // namespace

bool status_is(TupleTableSlot* beat, const char* expected) {
  bool isnull;
  return text_is(slot_getattr(beat, kBeatStatus, &isnull), expected);
}

void beat_beside_claim(int64 worker_id) {
  begin_async_write();
  JobTable table;
  open_extension_table(&table, catalog()->heartbeat);
  check_columns(RelationGetDescr(table.relation), "heartbeat");
  IndexLookup beats;
  open_index_lookup(&beats, table.relation, catalog()->heartbeat_key, table.snapshot);
  bool is_alive = find_id(&beats, worker_id) && status_is(beats.row, "alive");
  bool is_updated =
      is_alive && !overwrite_moment(table.relation, beats.row) && update_moment(&table, beats.row);
  end_async_write();
  close_index_lookup(&beats);
  close_job_table(&table);
  if (is_updated) CommandCounterIncrement();
}

}  // namespace pulse

// pulse.heartbeat(worker_id, job_ids): see sql/heartbeat.sql for the contract.
PULSE_FUNCTION(pulse_heartbeat) {
  bool names_jobs = !PG_ARGISNULL(1) && ARR_NDIM(PG_GETARG_ARRAYTYPE_P(1)) > 0;
  bool may_be_idle = !PG_ARGISNULL(0) && !names_jobs;
  pulse::begin_async_write();
  Datum answer = may_be_idle && pulse::beat_idle(PG_GETARG_INT64(0))
                     ? pulse::alive()
                     : pulse::call_in_full("_heartbeat_in_full", fcinfo);
  pulse::end_async_write();
  return answer;
}
