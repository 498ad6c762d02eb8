#include "job/insert_jobs.hpp"

#include "access/catalog.hpp"
#include "access/search_path.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

// What lives as long as NewJobs is not made in the caller's present context.
TupleTableSlot* slot_at(NewJobs* jobs, int position) {
  MemoryContext old = MemoryContextSwitchTo(jobs->context);
  for (; jobs->slots <= position; jobs->slots++)
    jobs->slot[jobs->slots] =
        MakeSingleTupleTableSlot(RelationGetDescr(jobs->table), &TTSOpsHeapTuple);
  MemoryContextSwitchTo(old);
  return jobs->slot[position];
}

// The slots free the rows, else they would copy them.
void store_plain(NewJobs* jobs, HeapTuple* rows, int count) {
  for (int i = 0; i < count; i++) ExecForceStoreHeapTuple(rows[i], slot_at(jobs, i), true);
  if (count == 1)
    table_tuple_insert(jobs->table, jobs->slot[0], jobs->command, 0, nullptr);
  else
    table_multi_insert(jobs->table, jobs->slot, count, jobs->command, 0, nullptr);
  enter_new_jobs(&jobs->indexes, jobs->slot, count);
  for (int i = 0; i < count; i++) ExecClearTuple(jobs->slot[i]);
}

// Returns it as triggers made it.
HeapTuple store_as_a_statement(NewJobs* jobs, HeapTuple row) {
  JobTable* table = &jobs->slow;
  under_secure_search_path([&] { insert_tuple(table, row); });
  HeapTuple stored = ExecCopySlotHeapTuple(table->changed);
  ExecClearTuple(table->changed);
  return stored;
}

}  // namespace

void open_new_jobs(NewJobs* jobs) {
  memset(jobs, 0, sizeof(*jobs));
  jobs->context = CurrentMemoryContext;
  jobs->table = table_open(catalog()->job, RowExclusiveLock);
  check_columns(RelationGetDescr(jobs->table), "job");
  // Whoever held us up may have changed it.
  jobs->is_plain = is_plain_job_table(jobs->table);
  jobs->command = GetCurrentCommandId(true);
  open_job_indexes(&jobs->indexes, jobs->table);
  if (jobs->is_plain) return;
  open_job_table(&jobs->slow);
  prepare_executor(&jobs->slow);
  // Where an expression of PL/pgSQL is all that calls, no query is under way that would fire them.
  if (jobs->table->trigdesc) AfterTriggerBeginQuery();
}

void close_new_jobs(NewJobs* jobs) {
  close_job_indexes(&jobs->indexes);
  for (int i = 0; i < jobs->slots; i++) ExecDropSingleTupleTableSlot(jobs->slot[i]);
  if (!jobs->is_plain) {
    if (jobs->table->trigdesc)
      under_secure_search_path([&] { AfterTriggerEndQuery(jobs->slow.estate); });
    close_job_table(&jobs->slow);
  }
  table_close(jobs->table, NoLock);
  CommandCounterIncrement();
}

HeapTuple form_new_job(NewJobs* jobs, Datum* values, bool* nulls) {
  bool is_parked = DatumGetObjectId(values[kJobState - 1]) == catalog()->state_parked;
  values[kJobIndexLane - 1] = CharGetDatum(is_parked ? kLaneParked : kLaneOpen);
  nulls[kJobIndexLane - 1] = false;
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
