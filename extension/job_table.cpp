#include "job_table.hpp"

#include "catalog.hpp"
#include "version.hpp"

namespace pulse {
namespace {

EState* new_estate(Relation relation, ResultRelInfo** result) {
  EState* estate = CreateExecutorState();
  RangeTblEntry* entry = makeNode(RangeTblEntry);
  entry->rtekind = RTE_RELATION;
  entry->relid = RelationGetRelid(relation);
  entry->relkind = relation->rd_rel->relkind;
  entry->rellockmode = RowExclusiveLock;
  init_range_table(estate, entry);
  *result = makeNode(ResultRelInfo);
  InitResultRelInfo(*result, relation, 1, nullptr, 0);
  estate->es_opened_result_relations = lappend(estate->es_opened_result_relations, *result);
  estate->es_output_cid = GetCurrentCommandId(true);
  return estate;
}

}  // namespace

void check_columns(TupleDesc shape, const char* name) {
  if (shape->natts > kMostColumns)
    ereport(ERROR,
            (errcode(ERRCODE_TOO_MANY_COLUMNS),
             errmsg("pulse.%s has %d columns, more than %d", name, shape->natts, kMostColumns),
             errhint("Keep what you add in a table of your own.")));
}

void open_job_table(JobTable* table) {
  open_own_table(table, catalog()->job);
  check_columns(RelationGetDescr(table->relation), "job");
}

void open_own_table(JobTable* table, Oid relation) {
  CommandCounterIncrement();
  table->relation = table_open(relation, RowExclusiveLock);
  table->snapshot = RegisterSnapshot(GetLatestSnapshot());
  table->estate = nullptr;
  table->locked = table_slot_create(table->relation, nullptr);
  table->changed = nullptr;
}

void prepare_updates(JobTable* table) {
  if (table->estate) return;
  table->estate = new_estate(table->relation, &table->result);
  table->estate->es_snapshot = table->snapshot;
  table->changed = MakeSingleTupleTableSlot(RelationGetDescr(table->relation), &TTSOpsHeapTuple);
  ExecOpenIndices(table->result, false);
}

void close_job_table(JobTable* table) {
  if (table->estate) {
    ExecCloseIndices(table->result);
    ExecDropSingleTupleTableSlot(table->changed);
    ExecResetTupleTable(table->estate->es_tupleTable, false);
    FreeExecutorState(table->estate);
  }
  ExecDropSingleTupleTableSlot(table->locked);
  UnregisterSnapshot(table->snapshot);
  table_close(table->relation, NoLock);
}

bool is_somebodys(TupleTableSlot* seen, TransactionId* known) {
  if (!TTS_IS_BUFFERTUPLE(seen)) return false;
  HeapTupleHeader header = reinterpret_cast<BufferHeapTupleTableSlot*>(seen)->base.tuple->t_data;
  // What others change in the page meanwhile is one word, old or new.
  uint16 flags = *const_cast<volatile uint16*>(&header->t_infomask);
  TransactionId xid = *const_cast<volatile TransactionId*>(&header->t_choice.t_heap.t_xmax);
  if ((flags & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)) || !TransactionIdIsValid(xid))
    return false;
  if (xid == *known) return true;
  if (TransactionIdIsCurrentTransactionId(xid) || !TransactionIdIsInProgress(xid)) return false;
  *known = xid;
  return true;
}

bool try_lock_row(JobTable* table, TupleTableSlot* seen) {
  TM_FailureData failure;
  ItemPointerData tid = seen->tts_tid;
  return table_tuple_lock(table->relation, &tid, table->snapshot, table->locked,
                          GetCurrentCommandId(false), LockTupleNoKeyExclusive, LockWaitSkip, 0,
                          &failure) == TM_Ok;
}

void update_locked_row(JobTable* table, JobChange* change) {
  prepare_updates(table);
  bool should_free;
  HeapTuple old_tuple = ExecFetchSlotHeapTuple(table->locked, false, &should_free);
  HeapTuple new_tuple = heap_modify_tuple(old_tuple, RelationGetDescr(table->relation),
                                          change->values, change->nulls, change->replaces);
  new_tuple->t_tableOid = RelationGetRelid(table->relation);
  ExecForceStoreHeapTuple(new_tuple, table->changed, false);
  update_row(table->relation, &table->locked->tts_tid, table->result, table->estate,
             table->snapshot, table->changed);
  ExecClearTuple(table->changed);
  heap_freetuple(new_tuple);
  if (should_free) heap_freetuple(old_tuple);
  ResetPerTupleExprContext(table->estate);
}

bool try_update_row(JobTable* table, TupleTableSlot* seen, JobChange* change) {
  TupleDesc shape = RelationGetDescr(table->relation);
  bool should_free;
  HeapTuple old_tuple = ExecFetchSlotHeapTuple(seen, false, &should_free);
  HeapTuple new_tuple =
      heap_modify_tuple(old_tuple, shape, change->values, change->nulls, change->replaces);
  new_tuple->t_tableOid = RelationGetRelid(table->relation);
  // Most updates need no executor state, which costs more than they do.
  TupleTableSlot* changed = MakeSingleTupleTableSlot(shape, &TTSOpsHeapTuple);
  ExecForceStoreHeapTuple(new_tuple, changed, false);
  IndexesToFollow indexes = kNoIndexes;
  bool is_done =
      update_version(table->relation, &seen->tts_tid, table->snapshot, changed, &indexes) == TM_Ok;
  if (is_done && indexes != kNoIndexes) {
    prepare_updates(table);
    update_indexes(table->result, table->estate, changed, indexes);
  }
  ExecDropSingleTupleTableSlot(changed);
  heap_freetuple(new_tuple);
  if (should_free) heap_freetuple(old_tuple);
  return is_done;
}

void insert_row(JobTable* table, Datum* values, bool* nulls) {
  prepare_updates(table);
  HeapTuple tuple = heap_form_tuple(RelationGetDescr(table->relation), values, nulls);
  tuple->t_tableOid = RelationGetRelid(table->relation);
  ExecForceStoreHeapTuple(tuple, table->changed, false);
  ExecSimpleRelationInsert(table->result, table->estate, table->changed);
  ExecClearTuple(table->changed);
  heap_freetuple(tuple);
  ResetPerTupleExprContext(table->estate);
}

TM_Result try_delete_row(JobTable* table, TupleTableSlot* row, bool wait) {
  TM_FailureData failure;
  ItemPointerData tid = row->tts_tid;
  return table_tuple_delete(table->relation, &tid, GetCurrentCommandId(true), table->snapshot,
                            InvalidSnapshot, wait, &failure, false);
}

}  // namespace pulse
