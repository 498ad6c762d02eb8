#include "job_table.hpp"

#include "catalog.hpp"

namespace pulse {
namespace {

EState* new_estate(Relation relation, ResultRelInfo** result) {
  EState* estate = CreateExecutorState();
  RangeTblEntry* entry = makeNode(RangeTblEntry);
  entry->rtekind = RTE_RELATION;
  entry->relid = RelationGetRelid(relation);
  entry->relkind = relation->rd_rel->relkind;
  entry->rellockmode = RowExclusiveLock;
  ExecInitRangeTable(estate, list_make1(entry));
  *result = makeNode(ResultRelInfo);
  InitResultRelInfo(*result, relation, 1, nullptr, 0);
  estate->es_opened_result_relations = lappend(estate->es_opened_result_relations, *result);
  estate->es_output_cid = GetCurrentCommandId(true);
  return estate;
}

}  // namespace

void open_job_table(JobTable* table) {
  CommandCounterIncrement();
  table->relation = table_open(catalog()->job, RowExclusiveLock);
  table->snapshot = RegisterSnapshot(GetLatestSnapshot());
  table->estate = nullptr;
  table->locked = table_slot_create(table->relation, nullptr);
  table->changed = nullptr;
}

// Built at the first update, because most claims of an idle worker find nothing.
static void prepare_updates(JobTable* table) {
  if (table->estate) return;
  table->estate = new_estate(table->relation, &table->result);
  table->estate->es_snapshot = table->snapshot;
  table->changed = MakeSingleTupleTableSlot(RelationGetDescr(table->relation), &TTSOpsHeapTuple);
  EvalPlanQualInit(&table->epq, table->estate, nullptr, NIL, -1);
  ExecOpenIndices(table->result, false);
}

void close_job_table(JobTable* table) {
  if (table->estate) {
    EvalPlanQualEnd(&table->epq);
    ExecCloseIndices(table->result);
    ExecDropSingleTupleTableSlot(table->changed);
    ExecResetTupleTable(table->estate->es_tupleTable, false);
    FreeExecutorState(table->estate);
  }
  ExecDropSingleTupleTableSlot(table->locked);
  UnregisterSnapshot(table->snapshot);
  table_close(table->relation, NoLock);
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
  ExecSimpleRelationUpdate(table->result, table->estate, &table->epq, table->locked,
                           table->changed);
  ExecClearTuple(table->changed);
  heap_freetuple(new_tuple);
  if (should_free) heap_freetuple(old_tuple);
  ResetPerTupleExprContext(table->estate);
}

}  // namespace pulse
