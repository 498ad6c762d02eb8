#include "job/job_index.hpp"

#include "job/statement_write.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

Oid oid_of(JobIndex which) {
  const Catalog* known = catalog();
  switch (which) {
    case kKeyIndex: return known->job_key;
    case kClaimIndex: return known->job_claim_idx;
    case kRunningIndex: return known->job_running_idx;
    case kParkedIndex: return known->job_parked_idx;
    case kParkedDueIndex: return known->job_parked_due_idx;
    case kOpenIndex: return known->job_open_idx;
    case kWaitingKeyIndex: return known->job_waiting_key_idx;
    default: return known->job_running_key_idx;
  }
}

bool is_ours(Oid index) {
  for (int i = 0; i < kJobIndexes; i++)
    if (index == oid_of(static_cast<JobIndex>(i))) return true;
  return false;
}

Datum value_of(TupleTableSlot* row, JobColumn column) {
  bool isnull;
  return slot_getattr(row, column, &isnull);
}

bool has(TupleTableSlot* row, JobColumn column) { return !slot_attisnull(row, column); }

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
  indexes->index[which] = index_open(oid_of(which), RowExclusiveLock);
  indexes->info[which] = BuildIndexInfo(indexes->index[which]);
  MemoryContextSwitchTo(old);
}

// An entry that the row's last version has too tells the index that deleting may spare a split.
void enter(JobIndexes* indexes, JobIndex which, TupleTableSlot* row, Entry* entry, bool has_twin) {
  if (!indexes->index[which]) open_index(indexes, which);
  IndexInfo* info = indexes->info[which];
  (void)index_insert(indexes->index[which], entry->values, entry->nulls, &row->tts_tid,
                     indexes->table, info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, has_twin,
                     info);
}

void enter(JobIndexes* indexes, JobIndex which, TupleTableSlot* row, JobColumn column,
           bool has_twin) {
  Entry entry = {};
  entry.add(value_of(row, column));
  enter(indexes, which, row, &entry, has_twin);
}

void add_order(Entry* entry, TupleTableSlot* row) {
  entry->add(value_of(row, kJobPriority));
  entry->add(value_of(row, kJobRunAt));
  entry->add(value_of(row, kJobId));
}

void enter_open(JobIndexes* indexes, TupleTableSlot* row) {
  Entry entry = {};
  entry.add(value_of(row, kJobIdentifier));
  add_order(&entry, row);
  enter(indexes, kClaimIndex, row, &entry, false);
}

void enter_held(JobIndexes* indexes, TupleTableSlot* row) {
  Entry entry = {};
  entry.add(value_of(row, kJobRunningWorkerId));
  entry.add(value_of(row, kJobId));
  enter(indexes, kRunningIndex, row, &entry, false);
}

void enter_parked(JobIndexes* indexes, TupleTableSlot* row) {
  Entry entry = {};
  Datum queue_name = value_of(row, kJobQueueName);
  entry.add(Int16GetDatum(queue_slot(DatumGetTextPP(queue_name))));
  entry.add(queue_name);
  add_order(&entry, row);
  enter(indexes, kParkedIndex, row, &entry, false);
  enter(indexes, kParkedDueIndex, row, kJobRunAt, false);
}

// As the predicates of the indexes have it (sql/tables.sql). A change of lane comes to an index
// that has no entry of the row, but for the places of a queue, which open and held jobs share.
void enter_by_index_lane(JobIndexes* indexes, TupleTableSlot* row, bool is_changed) {
  char lane = DatumGetChar(value_of(row, kJobIndexLane));
  switch (lane) {
    case kLaneParked: return enter_parked(indexes, row);
    case kLaneRunning: enter_held(indexes, row); break;
    default: enter_open(indexes, row); break;
  }
  if (has(row, kJobQueueName))
    enter(indexes, kOpenIndex, row, kJobQueueName, is_changed && lane == kLaneRunning);
}

void enter_by_key(JobIndexes* indexes, TupleTableSlot* row) {
  if (!has(row, kJobKey)) return;
  bool is_held = DatumGetChar(value_of(row, kJobIndexLane)) == kLaneRunning;
  enter(indexes, is_held ? kRunningKeyIndex : kWaitingKeyIndex, row, kJobKey, false);
}

}  // namespace

bool is_plain_job_table(Relation table) {
  if (RelationGetNumberOfAttributes(table) != kJobIndexLane || asks_for_statements(table))
    return false;
  List* indexes = RelationGetIndexList(table);
  bool all_ours = list_length(indexes) == kJobIndexes;
  ListCell* cell;
  foreach (cell, indexes) all_ours = all_ours && is_ours(lfirst_oid(cell));
  list_free(indexes);
  return all_ours;
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

// One index after the other: neighbours go to the same page.
void enter_new_jobs(JobIndexes* indexes, TupleTableSlot** rows, int count) {
  for (int i = 0; i < count; i++) enter(indexes, kKeyIndex, rows[i], kJobId, false);
  for (int i = 0; i < count; i++) enter_by_index_lane(indexes, rows[i], false);
  for (int i = 0; i < count; i++) enter_by_key(indexes, rows[i]);
}

void enter_changed_job(JobIndexes* indexes, TupleTableSlot* row) {
  enter(indexes, kKeyIndex, row, kJobId, true);
  enter_by_index_lane(indexes, row, true);
  enter_by_key(indexes, row);
}

}  // namespace pulse
