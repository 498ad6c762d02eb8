#include "claim/in_place_claim.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "claim/low_water_mark.hpp"
#include "job/job_table.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

int by_value(const void* a, const void* b) {
  int64 left = *static_cast<const int64*>(a);
  int64 right = *static_cast<const int64*>(b);
  return left < right ? -1 : left > right;
}

namespace {

// Below this the row in claim_batch and its index entry cost more than they save. The build with
// assertions has less, so that its tests claim in place wherever they can.
#ifndef PULSE_IN_PLACE_FROM
#define PULSE_IN_PLACE_FROM 8
#endif
constexpr int kMinJobs = PULSE_IN_PLACE_FROM;
// Such a row is not toasted.
constexpr int kMaxPerRow = 200;

// --- the list -----------------------------------------------------------------------------------

// Rows of the list: all, those of one worker, or those of one of its claims.
struct List {
  JobTable table;
  Relation index;
  IndexScanDesc scan;
  TupleTableSlot* row;
  // What was read of one row. Nothing else is put there: scans keep what they allocate.
  MemoryContext row_context;
};

struct ClaimBatch {
  int64 worker_id;
  int64 token;
  int remaining_jobs;
  int64* job_ids;
  int count;
};

void open_list(List* list, Snapshot snapshot, int keys) {
  open_extension_table(&list->table, catalog()->claim_batch);
  list->index = index_open(catalog()->claim_batch_idx, AccessShareLock);
  list->row = table_slot_create(list->table.relation, nullptr);
  list->row_context =
      AllocSetContextCreate(CurrentMemoryContext, "pulse fresh claim", ALLOCSET_DEFAULT_SIZES);
  list->scan = begin_index_scan(list->table.relation, list->index,
                                snapshot ? snapshot : list->table.snapshot, keys);
  if (keys == 0) index_rescan(list->scan, nullptr, 0, nullptr, 0);
}

void close_list(List* list) {
  index_endscan(list->scan);
  ExecDropSingleTupleTableSlot(list->row);
  index_close(list->index, AccessShareLock);
  close_job_table(&list->table);
  MemoryContextDelete(list->row_context);
}

void look_for(List* list, int64 worker_id, const int64* token) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], kBatchWorkerId, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(worker_id));
  if (token)
    ScanKeyInit(&keys[1], kBatchToken, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*token));
  index_rescan(list->scan, keys, token ? 2 : 1, nullptr, 0);
}

bool next_row(List* list) {
  CHECK_FOR_INTERRUPTS();
  return index_getnext_slot(list->scan, ForwardScanDirection, list->row);
}

// Valid until the next row is read.
ClaimBatch read_row(List* list, TupleTableSlot* row) {
  bool isnull;
  MemoryContextReset(list->row_context);
  MemoryContext old = MemoryContextSwitchTo(list->row_context);
  ArrayType* ids = DatumGetArrayTypePCopy(slot_getattr(row, kBatchJobIds, &isnull));
  MemoryContextSwitchTo(old);
  return {DatumGetInt64(slot_getattr(row, kBatchWorkerId, &isnull)),
          DatumGetInt64(slot_getattr(row, kBatchToken, &isnull)),
          DatumGetInt32(slot_getattr(row, kBatchRemainingJobs, &isnull)),
          reinterpret_cast<int64*>(ARR_DATA_PTR(ids)), ARR_NDIM(ids) == 0 ? 0 : ARR_DIMS(ids)[0]};
}

Datum array_of(const int64* ids, int count) {
  auto* elements = static_cast<Datum*>(palloc(sizeof(Datum) * Max(count, 1)));
  for (int i = 0; i < count; i++) elements[i] = Int64GetDatum(ids[i]);
  return PointerGetDatum(
      construct_array(elements, count, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

void add_row(JobTable* table, int64 worker_id, int64 token, const int64* ids, int count) {
  Datum values[] = {Int64GetDatum(worker_id), Int64GetDatum(token), Int32GetDatum(count),
                    array_of(ids, count)};
  bool nulls[] = {false, false, false, false};
  insert_row(table, values, nulls, lengthof(values));
}

// --- their jobs ---------------------------------------------------------------------------------

// Whether this job still runs under the claim that put it on the list; then the row is at hand.
bool find_in_place(IndexLookup* jobs, int64 id, int64 token) {
  if (!find_id(jobs, id)) return false;
  bool isnull;
  Datum stored = slot_getattr(jobs->row, kJobToken, &isnull);
  return !isnull && DatumGetInt64(stored) == token &&
         DatumGetBool(slot_getattr(jobs->row, kJobInPlace, &isnull)) &&
         DatumGetObjectId(slot_getattr(jobs->row, kJobState, &isnull)) == catalog()->state_running;
}

// Most claims take jobs in the order of their ids.
void expect_listed(IndexLookup* jobs, const ClaimBatch& listed) {
  bool ascends = listed.count > 0;
  for (int i = 1; i < listed.count && ascends; i++)
    ascends = listed.job_ids[i - 1] < listed.job_ids[i];
  if (ascends)
    expect_ids(jobs, listed.job_ids[0], listed.job_ids[listed.count - 1], listed.count);
  else
    expect_ids(jobs, 0, 0, 0);
}

// How many still run, without a look at those of which the caller knows that they have ended.
int count_running(IndexLookup* jobs, const ClaimBatch& listed, const int64* ended, int ended_count,
                  int max_count) {
  int running = 0;
  for (int i = 0; i < listed.count && running < max_count; i++) {
    const int64* id = &listed.job_ids[i];
    if (bsearch(id, ended, ended_count, sizeof(int64), by_value)) continue;
    if (find_in_place(jobs, *id, listed.token)) running++;
  }
  return running;
}

// --- settling -----------------------------------------------------------------------------------

// Moves the jobs of one row that still run. Those that somebody holds stay on the list.
void settle_row(List* list, JobTable* table, IndexLookup* jobs) {
  if (!try_lock_row(&list->table, list->row->tts_tid)) return;
  ClaimBatch listed = read_row(list, list->table.locked);
  int held = 0;
  for (int i = 0; i < listed.count; i++) {
    if (!find_in_place(jobs, listed.job_ids[i], listed.token)) continue;
    if (try_lock_row(table, jobs->row->tts_tid)) {
      JobChange change = {};
      change.set_running(listed.worker_id, false);
      update_locked_row(table, &change);
    } else {
      listed.job_ids[held++] = listed.job_ids[i];
    }
  }
  (void)try_delete_row(&list->table, list->table.locked, true);
  if (held > 0) add_row(&list->table, listed.worker_id, listed.token, listed.job_ids, held);
}

template <typename Each>
void for_rows_of(int64 worker_id, Each each) {
  List list;
  open_list(&list, nullptr, 1);
  look_for(&list, worker_id, nullptr);
  if (next_row(&list)) {
    JobTable table;
    IndexLookup jobs;
    open_job_table(&table);
    open_index_lookup(&jobs, table.relation, catalog()->job_key, table.snapshot);
    do each(&list, &table, &jobs);
    while (next_row(&list));
    close_index_lookup(&jobs);
    close_job_table(&table);
  }
  close_list(&list);
}

// --- ends ---------------------------------------------------------------------------------------

int by_claim(const void* a, const void* b) {
  auto* left = static_cast<const InPlaceEnd*>(a);
  auto* right = static_cast<const InPlaceEnd*>(b);
  if (left->worker_id != right->worker_id) return left->worker_id < right->worker_id ? -1 : 1;
  if (left->token != right->token) return left->token < right->token ? -1 : 1;
  return left->job_id < right->job_id ? -1 : left->job_id > right->job_id;
}

int count_ends(const ClaimBatch& listed, const InPlaceEnd* ends, int count) {
  int found = 0;
  for (int i = 0; i < listed.count; i++) {
    InPlaceEnd wanted = {listed.worker_id, listed.token, listed.job_ids[i]};
    if (bsearch(&wanted, ends, count, sizeof(InPlaceEnd), by_claim)) found++;
  }
  return found;
}

void unlist_row(List* list, const InPlaceEnd* ends, int count) {
  if (!try_lock_row(&list->table, list->row->tts_tid)) return;
  ClaimBatch listed = read_row(list, list->table.locked);
  int ended = count_ends(listed, ends, count);
  if (ended == 0) return;
  if (ended >= listed.remaining_jobs) {
    (void)try_delete_row(&list->table, list->table.locked, true);
    return;
  }
  JobChange change = {};
  change.set(kBatchRemainingJobs, Int32GetDatum(listed.remaining_jobs - ended));
  update_locked_row(&list->table, &change);
}

// --- what runs ----------------------------------------------------------------------------------

void add_id(RunningIds* ids, int64 id) {
  if (ids->count == ids->capacity) {
    ids->capacity *= 2;
    ids->elements =
        static_cast<int64*>(repalloc_huge(ids->elements, sizeof(int64) * ids->capacity));
  }
  ids->elements[ids->count++] = id;
}

void add_held(RunningIds* ids, Relation job, Snapshot snapshot, const int64* worker_id) {
  Relation index = index_open(catalog()->job_running_idx, AccessShareLock);
  TupleTableSlot* row = table_slot_create(job, nullptr);
  ScanKeyData key;
  if (worker_id) ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*worker_id));
  IndexScanDesc scan = begin_index_scan(job, index, snapshot, worker_id ? 1 : 0);
  index_rescan(scan, &key, worker_id ? 1 : 0, nullptr, 0);
  bool isnull;
  while (ids->count < ids->max_count && index_getnext_slot(scan, ForwardScanDirection, row)) {
    CHECK_FOR_INTERRUPTS();
    add_id(ids, DatumGetInt64(slot_getattr(row, kJobId, &isnull)));
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  index_close(index, AccessShareLock);
}

void add_in_place(RunningIds* ids, Relation job, Snapshot snapshot, const int64* worker_id) {
  IndexLookup jobs;
  List list;
  open_index_lookup(&jobs, job, catalog()->job_key, snapshot);
  open_list(&list, snapshot, worker_id ? 1 : 0);
  if (worker_id) look_for(&list, *worker_id, nullptr);
  while (ids->count < ids->max_count && next_row(&list)) {
    ClaimBatch listed = read_row(&list, list.row);
    expect_listed(&jobs, listed);
    for (int i = 0; i < listed.count && ids->count < ids->max_count; i++)
      if (find_in_place(&jobs, listed.job_ids[i], listed.token)) add_id(ids, listed.job_ids[i]);
  }
  close_list(&list);
  close_index_lookup(&jobs);
}

}  // namespace

RunningIds running_ids(const int64* worker_id, int max_count, Relation job, Snapshot snapshot) {
  constexpr int kFirst = 64;
  RunningIds ids = {static_cast<int64*>(palloc(sizeof(int64) * kFirst)), 0, kFirst, max_count};
  add_held(&ids, job, snapshot, worker_id);
  add_in_place(&ids, job, snapshot, worker_id);
  return ids;
}

bool claims_stay_in_place(int max_jobs) {
  return max_jobs >= kMinJobs && catalog()->has_index_lanes && this_database() && is_preloaded();
}

void index_running_now_and_then(int64 worker_id) {
  constexpr int64 kApartUs = 10000000;
  static int64 last_worker = 0;
  static TimestampTz last_at = 0;
  TimestampTz now = wall_now();
  if (worker_id == last_worker && now - last_at < kApartUs && now >= last_at) return;
  for_rows_of(worker_id, settle_row);
  last_worker = worker_id;
  last_at = now;
}

void add_claim_batches(int64 worker_id, int64 token, const int64* job_ids, int count) {
  if (count == 0) return;
  JobTable table;
  open_extension_table(&table, catalog()->claim_batch);
  for (int done = 0; done < count; done += kMaxPerRow)
    add_row(&table, worker_id, token, job_ids + done, Min(count - done, kMaxPerRow));
  close_job_table(&table);
}

void remove_from_batches(InPlaceEnd* ends, int count) {
  if (count == 0) return;
  qsort(ends, count, sizeof(InPlaceEnd), by_claim);
  List list;
  open_list(&list, nullptr, 2);
  int next;
  for (int first = 0; first < count; first = next) {
    next = first + 1;
    while (next < count && ends[next].worker_id == ends[first].worker_id &&
           ends[next].token == ends[first].token)
      next++;
    look_for(&list, ends[first].worker_id, &ends[first].token);
    while (next_row(&list)) unlist_row(&list, ends + first, next - first);
  }
  close_list(&list);
}

bool has_in_place_jobs(int64 worker_id, Relation job, Snapshot snapshot) {
  if (!catalog()->has_index_lanes) return false;
  RunningIds ids = {static_cast<int64*>(palloc(sizeof(int64))), 0, 1, 1};
  add_in_place(&ids, job, snapshot, &worker_id);
  return ids.count > 0;
}

}  // namespace pulse

// pulse._index_running(worker_id): see sql/claim_batch.sql for these three.
PULSE_FUNCTION(pulse_settle_claims) {
  pulse::for_rows_of(PG_GETARG_INT64(0), pulse::settle_row);
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_unlist_ended) {
  using pulse::List;
  ArrayType* array = PG_GETARG_ARRAYTYPE_P_COPY(1);
  auto* ended = reinterpret_cast<int64*>(ARR_DATA_PTR(array));
  int count = ARR_NDIM(array) == 0 ? 0 : ARR_DIMS(array)[0];
  qsort(ended, count, sizeof(int64), pulse::by_value);
  int max_count = PG_GETARG_INT32(2);
  int left = 0;
  auto unlist = [&](List* list, pulse::JobTable*, pulse::IndexLookup* jobs) {
    int running =
        pulse::count_running(jobs, pulse::read_row(list, list->row), ended, count, max_count);
    if (running == 0) (void)pulse::try_delete_row(&list->table, list->row);
    left += running;
  };
  pulse::for_rows_of(PG_GETARG_INT64(0), unlist);
  PG_RETURN_INT32(left);
}

PULSE_FUNCTION(pulse_running_ids) {
  int64 worker_id = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0);
  const int64* only = PG_ARGISNULL(0) ? nullptr : &worker_id;
  int max_count = PG_ARGISNULL(1) ? PG_INT32_MAX : PG_GETARG_INT32(1);
  Relation job = table_open(pulse::catalog()->job, AccessShareLock);
  pulse::RunningIds ids = pulse::running_ids(only, max_count, job, GetActiveSnapshot());
  table_close(job, AccessShareLock);
  return pulse::array_of(ids.elements, ids.count);
}

// pulse._has_claims(): a look at two indexes.
PULSE_FUNCTION(pulse_has_claims) {
  Snapshot snapshot = GetActiveSnapshot();
  int64 id;
  pulse::RunningIds ids = {&id, 0, 1, 1};
  Relation job = table_open(pulse::catalog()->job, AccessShareLock);
  pulse::add_held(&ids, job, snapshot, nullptr);
  table_close(job, AccessShareLock);
  if (ids.count > 0) PG_RETURN_BOOL(true);
  pulse::List list;
  pulse::open_list(&list, snapshot, 0);
  bool found = pulse::next_row(&list);
  pulse::close_list(&list);
  PG_RETURN_BOOL(found);
}
