#include "job/table.hpp"

#include "access/catalog.hpp"
#include "access/local_settings.hpp"
#include "access/not_null.hpp"
#include "counters/noted_depths.hpp"
#include "job/statement_write.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

HeapTuple changed_tuple(JobTable* table, TupleTableSlot* row, JobChange* change) {
  bool should_free;
  HeapTuple old_tuple = ExecFetchSlotHeapTuple(row, false, &should_free);
  HeapTuple tuple = heap_modify_tuple(old_tuple, RelationGetDescr(table->relation), change->values,
                                      change->nulls, change->replaces);
  if (should_free) heap_freetuple(old_tuple);
  return tuple;
}

// The slot owns and frees the tuple.
void put_changed(JobTable* table, HeapTuple tuple) {
  if (!table->changed) {
    MemoryContext old = MemoryContextSwitchTo(table->context);
    table->changed = MakeSingleTupleTableSlot(RelationGetDescr(table->relation), &TTSOpsHeapTuple);
    MemoryContextSwitchTo(old);
  }
  tuple->t_tableOid = RelationGetRelid(table->relation);
  ExecForceStoreHeapTuple(tuple, table->changed, true);
}

// Makes the executor's state on demand: most updates need no executor, and making it costs more
// than an update.
void prepare_executor(JobTable* table) {
  if (table->estate) return;
  MemoryContext old = MemoryContextSwitchTo(table->context);
  table->estate = CreateExecutorState();
  table->result = makeNode(ResultRelInfo);
  InitResultRelInfo(table->result, table->relation, 0, nullptr, 0);
  ExecOpenIndices(table->result, false);
  MemoryContextSwitchTo(old);
}

// Makes the index entries of the updated row, unless the update was HOT.
void update_job_indexes(JobTable* table, IndexesToFollow indexes) {
  if (indexes == kNoIndexes) return;
  if (table->is_job) return enter_changed_job(&table->indexes, table->changed);
  prepare_executor(table);
  under_secure_search_path(
      [&] { update_indexes(table->result, table->estate, table->changed, indexes); });
  ResetPerTupleExprContext(table->estate);
}

// Columns beyond the extension's are empty.
HeapTuple formed_row(Relation relation, const Datum* values, const bool* nulls, int columns) {
  Datum all[kMaxColumns];
  bool are_null[kMaxColumns];
  check_columns(RelationGetDescr(relation), RelationGetRelationName(relation));
  memset(are_null, true, sizeof(are_null));
  memcpy(all, values, sizeof(Datum) * columns);
  memcpy(are_null, nulls, sizeof(bool) * columns);
  return heap_form_tuple(RelationGetDescr(relation), all, are_null);
}

void note_changed_depths(JobTable* table, const JobChange& change) {
  if (!table->is_job || !change.replaces[kJobState - 1]) return;
  DepthRow before = depth_row(table->locked);
  DepthRow after = before;
  after.state = DatumGetObjectId(change.value(kJobState));
  if (change.replaces[kJobRunAt - 1]) after.run_at = DatumGetTimestampTz(change.value(kJobRunAt));
  note_changed_job(before, after);
}

void insert_directly(JobTable* table) {
  prepare_executor(table);
  under_secure_search_path(
      [&] { ExecSimpleRelationInsert(table->result, table->estate, table->changed); });
  ResetPerTupleExprContext(table->estate);
}

// Returns another transaction that shares a lock on the row, where the lock keeps claims from it.
TransactionId sharer_of(TupleTableSlot* seen) {
  auto* row = reinterpret_cast<BufferHeapTupleTableSlot*>(seen);
  // The flags and the number belong together.
  LockBuffer(row->buffer, BUFFER_LOCK_SHARE);
  uint16 flags = row->base.tuple->t_data->t_infomask;
  TransactionId xmax = HeapTupleHeaderGetRawXmax(row->base.tuple->t_data);
  LockBuffer(row->buffer, BUFFER_LOCK_UNLOCK);
  if ((flags & HEAP_XMAX_INVALID) || !(flags & HEAP_XMAX_IS_MULTI)) return InvalidTransactionId;
  MultiXactMember* members;
  int count = GetMultiXactIdMembers(xmax, &members, false, HEAP_XMAX_IS_LOCKED_ONLY(flags));
  for (int i = 0; i < count; i++)
    if (members[i].status > MultiXactStatusForKeyShare &&
        !TransactionIdIsCurrentTransactionId(members[i].xid) &&
        TransactionIdIsInProgress(members[i].xid))
      return members[i].xid;
  return InvalidTransactionId;
}

}  // namespace

void read_row_value(RowValue* row, HeapTupleHeader header, const char* table) {
  TupleDesc shape = shape_of(header);
  check_columns(shape, table);
  read_fields(header, shape, row->values, row->nulls);
  ReleaseTupleDesc(shape);
}

TupleDesc shape_of_type(HeapTupleHeader value, const char* type, int attributes) {
  TupleDesc shape = shape_of(value);
  if (shape->natts != attributes)
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("type %s has %d attributes, not %d", type, shape->natts, attributes),
             errhint("Run ALTER EXTENSION pg_pulse UPDATE, or undo the change of the type.")));
  return shape;
}

void check_columns(TupleDesc shape, const char* name) {
  if (shape->natts > kMaxColumns)
    ereport(ERROR,
            (errcode(ERRCODE_TOO_MANY_COLUMNS),
             errmsg("pulse.%s has %d columns, more than %d", name, shape->natts, kMaxColumns),
             errhint("Keep what you add in a table of your own.")));
}

void open_job_table(JobTable* table) {
  open_extension_table(table, catalog()->job);
  check_columns(RelationGetDescr(table->relation), "job");
  table->is_job = true;
  table->is_plain = is_plain_job_table(table->relation);
}

void take_new_snapshot(JobTable* table) {
  if (table->snapshot) UnregisterSnapshot(table->snapshot);
  CommandCounterIncrement();
  table->snapshot = RegisterSnapshot(GetLatestSnapshot());
}

void open_extension_table(JobTable* table, Oid relation) {
  table->context = CurrentMemoryContext;
  table->relation = table_open(relation, RowExclusiveLock);
  table->snapshot = nullptr;
  take_new_snapshot(table);
  table->is_job = false;
  const TupleConstr* constraints = table->relation->rd_att->constr;
  table->is_plain =
      !asks_for_statements(table->relation) && !(constraints && constraints->has_generated_stored);
  open_job_indexes(&table->indexes, table->relation);
  table->estate = nullptr;
  table->locked = table_slot_create(table->relation, nullptr);
  table->changed = nullptr;
}

void close_job_table(JobTable* table) {
  close_job_indexes(&table->indexes);
  if (table->changed) ExecDropSingleTupleTableSlot(table->changed);
  if (table->estate) {
    ExecCloseIndices(table->result);
    ExecResetTupleTable(table->estate->es_tupleTable, false);
    FreeExecutorState(table->estate);
  }
  ExecDropSingleTupleTableSlot(table->locked);
  UnregisterSnapshot(table->snapshot);
  table_close(table->relation, NoLock);
}

bool is_locked_by_other(TupleTableSlot* seen, TransactionId* known) {
  if (!TTS_IS_BUFFERTUPLE(seen)) return false;
  HeapTupleHeader header = reinterpret_cast<BufferHeapTupleTableSlot*>(seen)->base.tuple->t_data;
  // Reads without a lock on the page: other backends write each field as one word, so a reader sees
  // each field whole.
  uint16 flags = *const_cast<volatile uint16*>(&header->t_infomask);
  TransactionId xid = *const_cast<volatile TransactionId*>(&header->t_choice.t_heap.t_xmax);
  // The lock of a foreign key that refers to the row keeps no claim from the row.
  if ((flags & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)) || HEAP_XMAX_IS_KEYSHR_LOCKED(flags) ||
      !TransactionIdIsValid(xid))
    return false;
  if (xid == *known) return true;
  if (TransactionIdIsCurrentTransactionId(xid) || !TransactionIdIsInProgress(xid)) return false;
  *known = xid;
  return true;
}

TransactionId locker_of(TupleTableSlot* seen) {
  TransactionId known = InvalidTransactionId;
  return is_locked_by_other(seen, &known) ? known : sharer_of(seen);
}

TM_Result lock_row(JobTable* table, const ItemPointerData& seen, LockWaitPolicy policy,
                   LockTupleMode mode) {
  TM_FailureData failure;
  ItemPointerData tid = seen;
  return table_tuple_lock(table->relation, &tid, table->snapshot, table->locked,
                          GetCurrentCommandId(false), mode, policy, 0, &failure);
}

bool try_lock_row(JobTable* table, const ItemPointerData& seen) {
  return lock_row(table, seen, LockWaitSkip) == TM_Ok;
}

void update_locked_row(JobTable* table, JobChange* change) {
  MemoryContext old = MemoryContextSwitchTo(table->context);
  if (table->is_plain) {
    HeapTuple changed = changed_tuple(table, table->locked, change);
    refuse_nulls(table->relation, changed);
    put_changed(table, changed);
    IndexesToFollow indexes = kNoIndexes;
    simple_table_tuple_update(table->relation, &table->locked->tts_tid, table->changed,
                              table->snapshot, &indexes);
    update_job_indexes(table, indexes);
    note_changed_depths(table, *change);
  } else {
    put_changed(table, update_by_statement(table->relation, table->snapshot,
                                           &table->locked->tts_tid, *change));
  }
  MemoryContextSwitchTo(old);
}

void insert_row(JobTable* table, Datum* values, bool* nulls, int columns) {
  MemoryContext old = MemoryContextSwitchTo(table->context);
  HeapTuple row = formed_row(table->relation, values, nulls, columns);
  bool is_direct = table->is_plain && has_only_columns(table->relation, columns);
  if (!is_direct) insert_by_statement(table->relation, &row, 1, columns);
  put_changed(table, row);
  if (is_direct) insert_directly(table);
  MemoryContextSwitchTo(old);
}

TM_Result try_delete_row(JobTable* table, TupleTableSlot* row, bool wait) {
  TM_FailureData failure;
  ItemPointerData tid = row->tts_tid;
  if (table->is_plain) {
    TM_Result result = table_tuple_delete(table->relation, &tid, GetCurrentCommandId(true),
                                          table->snapshot, InvalidSnapshot, wait, &failure, false);
    if (table->is_job && result == TM_Ok) note_deleted_job(depth_row(row));
    return result;
  }
  // Locks first, because a DELETE statement would wait for the row.
  TM_Result result = lock_row(table, tid, wait ? LockWaitBlock : LockWaitSkip, LockTupleExclusive);
  if (result != TM_Ok) return result == TM_WouldBlock ? TM_BeingModified : result;
  delete_by_statement(table->relation, table->snapshot, &tid);
  return TM_Ok;
}

}  // namespace pulse

// pulse_internal.locked_by(job_id): the transaction that makes claims step over this job's row.
PULSE_FUNCTION(pulse_locked_by) {
  Relation job = table_open(pulse::catalog()->job, AccessShareLock);
  pulse::IndexLookup jobs;
  pulse::open_index_lookup(&jobs, job, pulse::catalog()->job_key, GetActiveSnapshot());
  TransactionId xid = InvalidTransactionId;
  if (pulse::find_id(&jobs, PG_GETARG_INT64(0))) xid = pulse::locker_of(jobs.row);
  pulse::close_index_lookup(&jobs);
  table_close(job, AccessShareLock);
  if (!TransactionIdIsValid(xid)) PG_RETURN_NULL();
  return TransactionIdGetDatum(xid);
}
