#include "job/job_index.hpp"

#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "job/statement_write.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

bool is_own_index(Oid index) {
  for (int i = 0; i < kJobIndexes; i++)
    if (index == oid_of_index(static_cast<JobIndex>(i))) return true;
  return false;
}

struct Entry {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  int count;

  void add(Datum value) {
    values[count] = value;
    nulls[count++] = false;
  }
};

void open_index(JobIndexes* indexes, JobIndex which) {
  MemoryContext old = MemoryContextSwitchTo(indexes->context);
  indexes->index[which] = index_open(oid_of_index(which), RowExclusiveLock);
  indexes->info[which] = BuildIndexInfo(indexes->index[which]);
  MemoryContextSwitchTo(old);
}

void add_order(Entry* entry, TupleTableSlot* row) {
  entry->add(value_of(row, kJobPriority));
  entry->add(value_of(row, kJobRunAt));
  entry->add(value_of(row, kJobId));
}

void add_queue(Entry* entry, TupleTableSlot* row) {
  Datum queue_name = value_of(row, kJobQueueName);
  entry->add(Int16GetDatum(queue_slot(DatumGetTextPP(queue_name))));
  entry->add(queue_name);
}

// The columns of each index, in the order of sql/tables.sql.
void make_entry(Entry* entry, JobIndex which, TupleTableSlot* row) {
  entry->count = 0;
  switch (which) {
    case kKeyIndex: return entry->add(value_of(row, kJobId));
    case kClaimIndex: entry->add(value_of(row, kJobIdentifier)); return add_order(entry, row);
    case kRunningIndex:
      entry->add(value_of(row, kJobRunningWorkerId));
      return entry->add(value_of(row, kJobId));
    case kParkedIndex: add_queue(entry, row); return add_order(entry, row);
    case kParkedDueIndex: return entry->add(value_of(row, kJobRunAt));
    case kOpenIndex: return entry->add(value_of(row, kJobQueueName));
    default: return entry->add(value_of(row, kJobKey));
  }
}

// `has_twin`: the previous version of the row has an equal entry. The index then deletes dead
// versions before it splits a page.
void enter(JobIndexes* indexes, JobIndex which, TupleTableSlot* row, bool has_twin) {
  if (!indexes->index[which]) open_index(indexes, which);
  IndexInfo* info = indexes->info[which];
  Entry entry;
  make_entry(&entry, which, row);
  (void)index_insert(indexes->index[which], entry.values, entry.nulls, &row->tts_tid,
                     indexes->table, info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, has_twin,
                     info);
}

char lane_of(TupleTableSlot* row) { return DatumGetChar(value_of(row, kJobIndexLane)); }

uint32 indexes_of(TupleTableSlot* row) {
  return indexes_with(lane_of(row), !slot_attisnull(row, kJobQueueName),
                      !slot_attisnull(row, kJobKey));
}

}  // namespace

bool is_plain_job_table(Relation table) {
  if (RelationGetNumberOfAttributes(table) != kJobIndexLane || asks_for_statements(table))
    return false;
  List* indexes = RelationGetIndexList(table);
  bool are_own = list_length(indexes) == kJobIndexes;
  ListCell* cell;
  foreach (cell, indexes) are_own = are_own && is_own_index(lfirst_oid(cell));
  list_free(indexes);
  return are_own;
}

void open_job_indexes(JobIndexes* indexes, Relation table) {
  memset(indexes, 0, sizeof(*indexes));
  indexes->context = CurrentMemoryContext;
  indexes->table = table;
}

void close_job_indexes(JobIndexes* indexes) {
  for (int i = 0; i < kJobIndexes; i++)
    if (indexes->index[i]) index_close(indexes->index[i], NoLock);
}

// Index by index, because entries of neighbouring jobs go to the same page.
void enter_new_jobs(JobIndexes* indexes, TupleTableSlot** rows, int count) {
  auto* which = static_cast<uint32*>(palloc(sizeof(uint32) * count));
  for (int i = 0; i < count; i++) which[i] = indexes_of(rows[i]);
  for (int index = 0; index < kJobIndexes; index++)
    for (int i = 0; i < count; i++)
      if (which[i] & (1u << index)) enter(indexes, static_cast<JobIndex>(index), rows[i], false);
  pfree(which);
}

// A change of the index lane makes entries in indexes that had none of the row. Two exceptions have
// a twin: the primary key, and the open jobs of a queue, which running jobs are among.
void enter_changed_job(JobIndexes* indexes, TupleTableSlot* row) {
  uint32 which = indexes_of(row);
  bool is_running = lane_of(row) == kLaneRunning;
  for (int index = 0; index < kJobIndexes; index++)
    if (which & (1u << index))
      enter(indexes, static_cast<JobIndex>(index), row,
            index == kKeyIndex || (index == kOpenIndex && is_running));
}

}  // namespace pulse
