#include "job/index.hpp"

#include "access/columns.hpp"
#include "job/statement_write.hpp"
#include "job/table.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

enum JobIndex {
  kKeyIndex,
  kClaimIndex,
  kRunningIndex,
  kParkedIndex,
  kParkedDueIndex,
  kOpenIndex,
  kWaitingKeyIndex,
  kRunningKeyIndex,
  kStartByIndex,
  kWaitsIndex,
  kSuccessorIndex,
  kUndecidedIndex
};

Oid oid_of_index(int which) {
  static constexpr Oid Catalog::*kOids[kJobIndexes] = {&Catalog::job_key,
                                                       &Catalog::job_claim_idx,
                                                       &Catalog::job_running_idx,
                                                       &Catalog::job_parked_idx,
                                                       &Catalog::job_parked_due_idx,
                                                       &Catalog::job_open_idx,
                                                       &Catalog::job_waiting_key_idx,
                                                       &Catalog::job_running_key_idx,
                                                       &Catalog::job_start_by_idx,
                                                       &Catalog::job_waits_idx,
                                                       &Catalog::job_successor_idx,
                                                       &Catalog::job_undecided_idx};
  return catalog()->*kOids[which];
}

bool is_own_index(Oid index) {
  for (int i = 0; i < kJobIndexes; i++)
    if (index == oid_of_index(i)) return true;
  return false;
}

struct IndexedFields {
  bool has_queue;
  bool has_key;
  bool may_expire;
  bool has_succession;
};

// A bit for each index that has an entry of a job in this lane with these fields.
uint32 indexes_with(char lane, const IndexedFields& job) {
  uint32 indexes = 1u << kKeyIndex;
  if (lane == kLaneOpen) indexes |= 1u << kClaimIndex;
  if (lane == kLaneRunning) indexes |= 1u << kRunningIndex;
  if (lane == kLaneParked) indexes |= 1u << kParkedIndex | 1u << kParkedDueIndex;
  if (lane == kLaneUndecided) indexes |= 1u << kUndecidedIndex;
  if ((lane == kLaneParked || lane == kLaneUndecided) && job.has_succession)
    indexes |= 1u << kSuccessorIndex;
  if (lane == kLaneWaits) indexes |= 1u << kWaitsIndex;
  if (job.has_queue && (lane == kLaneOpen || lane == kLaneRunning)) indexes |= 1u << kOpenIndex;
  bool is_waiting = lane != kLaneRunning && lane != kLaneUndecided;
  if (job.has_key) indexes |= 1u << (is_waiting ? kWaitingKeyIndex : kRunningKeyIndex);
  if (job.may_expire) indexes |= 1u << kStartByIndex;
  return indexes;
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

void open_index(JobIndexes* indexes, int which) {
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
  entry->add(Int16GetDatum(queue_bucket(DatumGetTextPP(queue_name))));
  entry->add(queue_name);
}

void add_succession(Entry* entry, TupleTableSlot* row) {
  entry->add(value_of(row, kJobQueueName));
  entry->add(value_of(row, kJobSuccession));
  entry->add(value_of(row, kJobId));
}

void add_parent(Entry* entry, TupleTableSlot* row) {
  Datum waits_on = value_of(row, kJobWaitsOn);
  entry->add(Int64GetDatum(parent_bucket(DatumGetInt64(waits_on))));
  entry->add(waits_on);
  entry->add(value_of(row, kJobId));
}

// The columns of each index, in the order of sql/structure/tables.sql.
void make_entry(Entry* entry, int which, TupleTableSlot* row) {
  entry->count = 0;
  switch (which) {
    case kKeyIndex:
    case kUndecidedIndex: return entry->add(value_of(row, kJobId));
    case kClaimIndex: entry->add(value_of(row, kJobIdentifier)); return add_order(entry, row);
    case kRunningIndex:
      entry->add(value_of(row, kJobRunningWorkerId));
      return entry->add(value_of(row, kJobId));
    case kParkedIndex: add_queue(entry, row); return add_order(entry, row);
    case kParkedDueIndex: return entry->add(value_of(row, kJobRunAt));
    case kOpenIndex: return entry->add(value_of(row, kJobQueueName));
    case kStartByIndex: return entry->add(value_of(row, kJobStartBy));
    case kWaitsIndex: return add_parent(entry, row);
    case kSuccessorIndex: return add_succession(entry, row);
    default: return entry->add(value_of(row, kJobKey));
  }
}

// `has_twin`: the previous version of the row has an equal entry in this index. The index then
// deletes dead versions before it splits a page.
void enter(JobIndexes* indexes, int which, TupleTableSlot* row, bool has_twin) {
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
  return indexes_with(lane_of(row),
                      {!slot_attisnull(row, kJobQueueName), !slot_attisnull(row, kJobKey),
                       !slot_attisnull(row, kJobStartBy), !slot_attisnull(row, kJobSuccession)});
}

Datum names_of(uint32 indexes) {
  Datum names[kJobIndexes];
  int count = 0;
  for (int i = 0; i < kJobIndexes; i++)
    if (indexes & (1u << i)) names[count++] = CStringGetTextDatum(get_rel_name(oid_of_index(i)));
  return PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

}  // namespace

char index_lane(Oid state, bool is_in_place, bool waits, bool is_undecided) {
  if (waits) return kLaneWaits;
  if (is_undecided) return kLaneUndecided;
  if (state == catalog()->state_parked) return kLaneParked;
  return state == catalog()->state_running && !is_in_place ? kLaneRunning : kLaneOpen;
}

bool has_only_columns(Relation table, int count) {
  TupleDesc shape = RelationGetDescr(table);
  if (shape->natts < count) return false;
  for (int i = count; i < shape->natts; i++)
    if (!TupleDescAttr(shape, i)->attisdropped) return false;
  return true;
}

bool is_plain_job_table(Relation table) {
  if (!has_only_columns(table, kJobColumns) || asks_for_statements(table)) return false;
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
      if (which[i] & (1u << index)) enter(indexes, index, rows[i], false);
  pfree(which);
}

// A change of the index lane makes entries in indexes that had no entry of the row. Two kinds of
// entries have a twin: entries that stay equal while the lane changes, and entries of the index of
// a queue's open jobs, which also has running jobs. A placed job has no older entry in the index of
// open jobs, but dead entries of the job's queue leave space for the new entry.
void enter_changed_job(JobIndexes* indexes, TupleTableSlot* row) {
  uint32 which = indexes_of(row);
  bool is_running = lane_of(row) == kLaneRunning;
  for (int index = 0; index < kJobIndexes; index++)
    if (which & (1u << index))
      enter(indexes, index, row,
            index == kKeyIndex || index == kStartByIndex || (index == kOpenIndex && is_running));
}

}  // namespace pulse

// index_rules(job) of test/pgtap/index_lane.sql: the index lane, running worker and indexes that a
// direct write gives.
PULSE_FUNCTION(pulse_index_rules) {
  using namespace pulse;
  RowValue job;
  read_row_value(&job, pulse::header_of(PG_GETARG_DATUM(0)), "job");
  NullableDatum undecided = job.field(kJobKeyIsUndecided);
  char lane =
      index_lane(DatumGetObjectId(job.value(kJobState)), DatumGetBool(job.value(kJobInPlace)),
                 job.has(kJobWaitsOn), !undecided.isnull && DatumGetBool(undecided.value));
  bool has_running_worker = lane == kLaneRunning && job.has(kJobWorkerId);
  uint32 indexes = indexes_with(lane, {job.has(kJobQueueName), job.has(kJobKey),
                                       job.has(kJobStartBy), job.has(kJobSuccession)});
  PG_RETURN_DATUM(result_row(fcinfo, {given(CharGetDatum(lane)),
                                      {job.value(kJobWorkerId), !has_running_worker},
                                      given(names_of(indexes))}));
}
