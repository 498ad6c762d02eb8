#include "new_jobs.hpp"

#include "catalog.hpp"
#include "shared_memory.hpp"
#include "version.hpp"

namespace pulse {
namespace {

bool is_ours(Oid index) {
  const Catalog* known = catalog();
  return index == known->job_key || index == known->job_claim_idx ||
         index == known->job_running_idx || index == known->job_parked_idx ||
         index == known->job_parked_due_idx || index == known->job_open_idx ||
         index == known->job_waiting_key_idx || index == known->job_running_key_idx;
}

bool is_plain(Relation table) {
  if (RelationGetNumberOfAttributes(table) != kJobLane || table->trigdesc ||
      table->rd_att->constr->num_check > 0)
    return false;
  List* indexes = RelationGetIndexList(table);
  bool all_ours = list_length(indexes) == kJobIndexes;
  ListCell* cell;
  foreach (cell, indexes) all_ours = all_ours && is_ours(lfirst_oid(cell));
  list_free(indexes);
  return all_ours;
}

Oid oid_of(NewJobIndex which) {
  switch (which) {
    case kNewKey: return catalog()->job_key;
    case kNewClaim: return catalog()->job_claim_idx;
    case kNewParked: return catalog()->job_parked_idx;
    case kNewParkedDue: return catalog()->job_parked_due_idx;
    default: return catalog()->job_waiting_key_idx;
  }
}

// What lives as long as NewJobs is not made in the caller's present context.
TupleTableSlot* slot_at(NewJobs* jobs, int position) {
  MemoryContext old = MemoryContextSwitchTo(jobs->context);
  for (; jobs->slots <= position; jobs->slots++)
    jobs->slot[jobs->slots] =
        MakeSingleTupleTableSlot(RelationGetDescr(jobs->table), &TTSOpsHeapTuple);
  MemoryContextSwitchTo(old);
  return jobs->slot[position];
}

// --- index entries ------------------------------------------------------------------------------

struct Entry {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  int count;

  void add(Datum value) {
    values[count] = value;
    nulls[count++] = false;
  }
};

Datum value_of(TupleTableSlot* row, JobColumn column) {
  bool isnull;
  return slot_getattr(row, column, &isnull);
}

bool has(TupleTableSlot* row, JobColumn column) { return !slot_attisnull(row, column); }

void enter(NewJobs* jobs, NewJobIndex which, TupleTableSlot* row, Entry* entry) {
  if (!jobs->index[which]) {
    MemoryContext old = MemoryContextSwitchTo(jobs->context);
    jobs->index[which] = index_open(oid_of(which), RowExclusiveLock);
    jobs->index_info[which] = BuildIndexInfo(jobs->index[which]);
    MemoryContextSwitchTo(old);
  }
  bool is_unique = jobs->index_info[which]->ii_Unique;
  (void)index_insert(jobs->index[which], entry->values, entry->nulls, &row->tts_tid, jobs->table,
                     is_unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false,
                     jobs->index_info[which]);
}

void enter(NewJobs* jobs, NewJobIndex which, TupleTableSlot* row, JobColumn column) {
  Entry entry = {};
  entry.add(value_of(row, column));
  enter(jobs, which, row, &entry);
}

void add_order(Entry* entry, TupleTableSlot* row) {
  entry->add(value_of(row, kJobPriority));
  entry->add(value_of(row, kJobRunAt));
  entry->add(value_of(row, kJobId));
}

void enter_into_lane(NewJobs* jobs, TupleTableSlot* row) {
  Entry entry = {};
  if (!has(row, kJobQueueName)) {
    entry.add(value_of(row, kJobIdentifier));
    add_order(&entry, row);
    return enter(jobs, kNewClaim, row, &entry);
  }
  Datum queue_name = value_of(row, kJobQueueName);
  entry.add(Int16GetDatum(queue_slot(DatumGetTextPP(queue_name))));
  entry.add(queue_name);
  add_order(&entry, row);
  enter(jobs, kNewParked, row, &entry);
  enter(jobs, kNewParkedDue, row, kJobRunAt);
}

// --- storing ------------------------------------------------------------------------------------

// The slots free the rows, else they would copy them.
void store_plain(NewJobs* jobs, HeapTuple* rows, int count) {
  for (int i = 0; i < count; i++) ExecForceStoreHeapTuple(rows[i], slot_at(jobs, i), true);
  if (count == 1)
    table_tuple_insert(jobs->table, jobs->slot[0], jobs->command, 0, nullptr);
  else
    table_multi_insert(jobs->table, jobs->slot, count, jobs->command, 0, nullptr);
  // One index after the other: neighbours go to the same page.
  for (int i = 0; i < count; i++) enter(jobs, kNewKey, jobs->slot[i], kJobId);
  for (int i = 0; i < count; i++) enter_into_lane(jobs, jobs->slot[i]);
  for (int i = 0; i < count; i++)
    if (has(jobs->slot[i], kJobKey)) enter(jobs, kNewWaitingKey, jobs->slot[i], kJobKey);
  for (int i = 0; i < count; i++) ExecClearTuple(jobs->slot[i]);
}

// Returns it as triggers made it.
HeapTuple store_as_a_statement(NewJobs* jobs, HeapTuple row) {
  JobTable* table = &jobs->slow;
  ExecForceStoreHeapTuple(row, table->changed, true);
  ExecSimpleRelationInsert(table->result, table->estate, table->changed);
  HeapTuple stored = ExecCopySlotHeapTuple(table->changed);
  ExecClearTuple(table->changed);
  ResetPerTupleExprContext(table->estate);
  return stored;
}

}  // namespace

void open_new_jobs(NewJobs* jobs) {
  memset(jobs, 0, sizeof(*jobs));
  jobs->context = CurrentMemoryContext;
  jobs->table = table_open(catalog()->job, RowExclusiveLock);
  check_columns(RelationGetDescr(jobs->table), "job");
  // Whoever held us up may have changed it.
  jobs->is_plain = is_plain(jobs->table);
  jobs->command = GetCurrentCommandId(true);
  if (jobs->is_plain) return;
  open_job_table(&jobs->slow);
  prepare_updates(&jobs->slow);
  // Where an expression of PL/pgSQL is all that calls, no query is under way that would fire them.
  if (jobs->table->trigdesc) AfterTriggerBeginQuery();
}

void close_new_jobs(NewJobs* jobs) {
  for (int i = 0; i < kNewJobIndexes; i++)
    if (jobs->index[i]) index_close(jobs->index[i], NoLock);
  for (int i = 0; i < jobs->slots; i++) ExecDropSingleTupleTableSlot(jobs->slot[i]);
  if (!jobs->is_plain) {
    if (jobs->table->trigdesc) AfterTriggerEndQuery(jobs->slow.estate);
    close_job_table(&jobs->slow);
  }
  table_close(jobs->table, NoLock);
  CommandCounterIncrement();
}

HeapTuple form_new_job(NewJobs* jobs, Datum* values, bool* nulls) {
  bool is_parked = DatumGetObjectId(values[kJobState - 1]) == catalog()->state_parked;
  values[kJobLane - 1] = CharGetDatum(is_parked ? kLaneParked : kLaneOpen);
  nulls[kJobLane - 1] = false;
  HeapTuple row = heap_form_tuple(RelationGetDescr(jobs->table), values, nulls);
  row->t_tableOid = RelationGetRelid(jobs->table);
  return row;
}

void store_new_jobs(NewJobs* jobs, HeapTuple* rows, int count, Tuplestorestate* results) {
  for (int i = 0; i < count; i++) {
    if (!jobs->is_plain) rows[i] = store_as_a_statement(jobs, rows[i]);
    tuplestore_puttuple(results, rows[i]);
  }
  if (jobs->is_plain && count > 0) store_plain(jobs, rows, count);
}

Datum store_new_job(NewJobs* jobs, HeapTuple row) {
  if (!jobs->is_plain) row = store_as_a_statement(jobs, row);
  Datum stored = heap_copy_tuple_as_datum(row, RelationGetDescr(jobs->table));
  if (jobs->is_plain) store_plain(jobs, &row, 1);
  return stored;
}

}  // namespace pulse
