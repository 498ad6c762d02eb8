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

int compare_ids(const void* a, const void* b) {
  int64 left = *static_cast<const int64*>(a);
  int64 right = *static_cast<const int64*>(b);
  return left < right ? -1 : left > right;
}

namespace {

// For fewer jobs, the row in pulse.claim_batch and its index entry cost more than they save. The
// build with assertions has a smaller number, so that its tests claim in place wherever they can.
#ifndef PULSE_IN_PLACE_FROM
#define PULSE_IN_PLACE_FROM 8
#endif
constexpr int kMinJobs = PULSE_IN_PLACE_FROM;
// A row of so many ids is not toasted.
constexpr int kMaxPerRow = 200;

// --- batches ------------------------------------------------------------------------------------

// A scan of claim batches: all, those of one worker, or those of one claim.
struct ClaimBatches {
  JobTable table;
  Relation index;
  IndexScanDesc scan;
  TupleTableSlot* row;
  // Has the ids of one batch only, because scans keep what they allocate.
  MemoryContext row_context;
};

struct ClaimBatch {
  int64 worker_id;
  int64 token;
  int remaining_jobs;
  int64* job_ids;
  int count;
};

void open_batches(ClaimBatches* batches, Snapshot snapshot, int keys) {
  open_extension_table(&batches->table, catalog()->claim_batch);
  batches->index = index_open(catalog()->claim_batch_idx, AccessShareLock);
  batches->row = table_slot_create(batches->table.relation, nullptr);
  batches->row_context =
      AllocSetContextCreate(CurrentMemoryContext, "pulse claim batch", ALLOCSET_DEFAULT_SIZES);
  batches->scan = begin_index_scan(batches->table.relation, batches->index,
                                   snapshot ? snapshot : batches->table.snapshot, keys);
  if (keys == 0) index_rescan(batches->scan, nullptr, 0, nullptr, 0);
}

void close_batches(ClaimBatches* batches) {
  index_endscan(batches->scan);
  ExecDropSingleTupleTableSlot(batches->row);
  index_close(batches->index, AccessShareLock);
  close_job_table(&batches->table);
  MemoryContextDelete(batches->row_context);
}

void seek_batches(ClaimBatches* batches, int64 worker_id, const int64* token) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], kBatchWorkerId, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(worker_id));
  if (token)
    ScanKeyInit(&keys[1], kBatchToken, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*token));
  index_rescan(batches->scan, keys, token ? 2 : 1, nullptr, 0);
}

bool next_batch(ClaimBatches* batches) {
  CHECK_FOR_INTERRUPTS();
  return index_getnext_slot(batches->scan, ForwardScanDirection, batches->row);
}

// Valid until the next call.
ClaimBatch read_batch(ClaimBatches* batches, TupleTableSlot* row) {
  MemoryContextReset(batches->row_context);
  MemoryContext old = MemoryContextSwitchTo(batches->row_context);
  ArrayType* ids = DatumGetArrayTypePCopy(value_of(row, kBatchJobIds));
  MemoryContextSwitchTo(old);
  return {DatumGetInt64(value_of(row, kBatchWorkerId)), DatumGetInt64(value_of(row, kBatchToken)),
          DatumGetInt32(value_of(row, kBatchRemainingJobs)),
          reinterpret_cast<int64*>(ARR_DATA_PTR(ids)), ARR_NDIM(ids) == 0 ? 0 : ARR_DIMS(ids)[0]};
}

Datum array_of(const int64* ids, int count) {
  auto* elements = static_cast<Datum*>(palloc(sizeof(Datum) * Max(count, 1)));
  for (int i = 0; i < count; i++) elements[i] = Int64GetDatum(ids[i]);
  return PointerGetDatum(
      construct_array(elements, count, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

void insert_batch(JobTable* table, int64 worker_id, int64 token, const int64* ids, int count) {
  Datum values[] = {Int64GetDatum(worker_id), Int64GetDatum(token), Int32GetDatum(count),
                    array_of(ids, count)};
  bool nulls[] = {false, false, false, false};
  insert_row(table, values, nulls, lengthof(values));
}

// --- jobs of batches ----------------------------------------------------------------------------

// Whether the job still runs in place under this claim; `jobs->row` has it then.
bool find_in_place(IndexLookup* jobs, int64 id, int64 token) {
  if (!find_id(jobs, id)) return false;
  TupleTableSlot* row = jobs->row;
  return !slot_attisnull(row, kJobToken) && DatumGetInt64(value_of(row, kJobToken)) == token &&
         DatumGetBool(value_of(row, kJobInPlace)) &&
         DatumGetObjectId(value_of(row, kJobState)) == catalog()->state_running;
}

// Most claims take jobs in the order of their ids, so that one range scan finds them.
void expect_batch(IndexLookup* jobs, const ClaimBatch& batch) {
  bool ascends = batch.count > 0;
  for (int i = 1; i < batch.count && ascends; i++)
    ascends = batch.job_ids[i - 1] < batch.job_ids[i];
  if (ascends)
    expect_ids(jobs, batch.job_ids[0], batch.job_ids[batch.count - 1], batch.count);
  else
    expect_ids(jobs, 0, 0, 0);
}

// How many jobs of the batch still run, up to max_count. The caller knows that those in `ended` do
// not, so this does not look them up.
int count_running(IndexLookup* jobs, const ClaimBatch& batch, const int64* ended, int ended_count,
                  int max_count) {
  int running = 0;
  for (int i = 0; i < batch.count && running < max_count; i++) {
    const int64* id = &batch.job_ids[i];
    if (bsearch(id, ended, ended_count, sizeof(int64), compare_ids)) continue;
    if (find_in_place(jobs, *id, batch.token)) running++;
  }
  return running;
}

// --- indexing running jobs ----------------------------------------------------------------------

// Makes the running jobs of a batch indexed ones. Jobs that another transaction has locked stay in
// a batch.
void index_batch(ClaimBatches* batches, JobTable* table, IndexLookup* jobs) {
  if (!try_lock_row(&batches->table, batches->row->tts_tid)) return;
  ClaimBatch batch = read_batch(batches, batches->table.locked);
  int locked = 0;
  for (int i = 0; i < batch.count; i++) {
    if (!find_in_place(jobs, batch.job_ids[i], batch.token)) continue;
    if (try_lock_row(table, jobs->row->tts_tid)) {
      JobChange change = {};
      change.set_running(batch.worker_id, false);
      update_locked_row(table, &change);
    } else {
      batch.job_ids[locked++] = batch.job_ids[i];
    }
  }
  (void)try_delete_row(&batches->table, batches->table.locked, true);
  if (locked > 0)
    insert_batch(&batches->table, batch.worker_id, batch.token, batch.job_ids, locked);
}

template <typename Each>
void for_batches_of(int64 worker_id, Each each) {
  ClaimBatches batches;
  open_batches(&batches, nullptr, 1);
  seek_batches(&batches, worker_id, nullptr);
  if (next_batch(&batches)) {
    JobTable table;
    IndexLookup jobs;
    open_job_table(&table);
    open_index_lookup(&jobs, table.relation, catalog()->job_key, table.snapshot);
    do each(&batches, &table, &jobs);
    while (next_batch(&batches));
    close_index_lookup(&jobs);
    close_job_table(&table);
  }
  close_batches(&batches);
}

// --- completed jobs -----------------------------------------------------------------------------

int by_claim(const void* a, const void* b) {
  auto* left = static_cast<const InPlaceEnd*>(a);
  auto* right = static_cast<const InPlaceEnd*>(b);
  if (left->worker_id != right->worker_id) return left->worker_id < right->worker_id ? -1 : 1;
  if (left->token != right->token) return left->token < right->token ? -1 : 1;
  return left->job_id < right->job_id ? -1 : left->job_id > right->job_id;
}

int count_ended(const ClaimBatch& batch, const InPlaceEnd* ends, int count) {
  int found = 0;
  for (int i = 0; i < batch.count; i++) {
    InPlaceEnd wanted = {batch.worker_id, batch.token, batch.job_ids[i]};
    if (bsearch(&wanted, ends, count, sizeof(InPlaceEnd), by_claim)) found++;
  }
  return found;
}

void shrink_batch(ClaimBatches* batches, const InPlaceEnd* ends, int count) {
  if (!try_lock_row(&batches->table, batches->row->tts_tid)) return;
  ClaimBatch batch = read_batch(batches, batches->table.locked);
  int ended = count_ended(batch, ends, count);
  if (ended == 0) return;
  if (ended >= batch.remaining_jobs) {
    (void)try_delete_row(&batches->table, batches->table.locked, true);
    return;
  }
  JobChange change = {};
  change.set(kBatchRemainingJobs, Int32GetDatum(batch.remaining_jobs - ended));
  update_locked_row(&batches->table, &change);
}

// --- running jobs -------------------------------------------------------------------------------

void add_id(RunningIds* ids, int64 id) {
  if (ids->count == ids->capacity) {
    ids->capacity *= 2;
    ids->elements =
        static_cast<int64*>(repalloc_huge(ids->elements, sizeof(int64) * ids->capacity));
  }
  ids->elements[ids->count++] = id;
}

void add_indexed(RunningIds* ids, Relation job, Snapshot snapshot, const int64* worker_id) {
  Relation index = index_open(catalog()->job_running_idx, AccessShareLock);
  TupleTableSlot* row = table_slot_create(job, nullptr);
  ScanKeyData key;
  if (worker_id) ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*worker_id));
  IndexScanDesc scan = begin_index_scan(job, index, snapshot, worker_id ? 1 : 0);
  index_rescan(scan, &key, worker_id ? 1 : 0, nullptr, 0);
  while (ids->count < ids->max_count && index_getnext_slot(scan, ForwardScanDirection, row)) {
    CHECK_FOR_INTERRUPTS();
    add_id(ids, DatumGetInt64(value_of(row, kJobId)));
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  index_close(index, AccessShareLock);
}

void add_in_place(RunningIds* ids, Relation job, Snapshot snapshot, const int64* worker_id) {
  IndexLookup jobs;
  ClaimBatches batches;
  open_index_lookup(&jobs, job, catalog()->job_key, snapshot);
  open_batches(&batches, snapshot, worker_id ? 1 : 0);
  if (worker_id) seek_batches(&batches, *worker_id, nullptr);
  while (ids->count < ids->max_count && next_batch(&batches)) {
    ClaimBatch batch = read_batch(&batches, batches.row);
    expect_batch(&jobs, batch);
    for (int i = 0; i < batch.count && ids->count < ids->max_count; i++)
      if (find_in_place(&jobs, batch.job_ids[i], batch.token)) add_id(ids, batch.job_ids[i]);
  }
  close_batches(&batches);
  close_index_lookup(&jobs);
}

}  // namespace

RunningIds running_ids(const int64* worker_id, int max_count, Relation job, Snapshot snapshot) {
  constexpr int kCapacity = 64;
  RunningIds ids = {static_cast<int64*>(palloc(sizeof(int64) * kCapacity)), 0, kCapacity,
                    max_count};
  add_indexed(&ids, job, snapshot, worker_id);
  add_in_place(&ids, job, snapshot, worker_id);
  return ids;
}

bool claims_stay_in_place(int max_jobs) {
  return max_jobs >= kMinJobs && catalog()->has_index_lanes && this_database() && is_preloaded();
}

void index_running_now_and_then(int64 worker_id) {
  constexpr int64 kIntervalUs = 10000000;
  static int64 last_worker = 0;
  static TimestampTz last_at = 0;
  TimestampTz now = wall_now();
  if (worker_id == last_worker && now - last_at < kIntervalUs && now >= last_at) return;
  for_batches_of(worker_id, index_batch);
  last_worker = worker_id;
  last_at = now;
}

void add_claim_batches(int64 worker_id, int64 token, const int64* job_ids, int count) {
  if (count == 0) return;
  JobTable table;
  open_extension_table(&table, catalog()->claim_batch);
  for (int done = 0; done < count; done += kMaxPerRow)
    insert_batch(&table, worker_id, token, job_ids + done, Min(count - done, kMaxPerRow));
  close_job_table(&table);
}

void remove_from_batches(InPlaceEnd* ends, int count) {
  if (count == 0) return;
  qsort(ends, count, sizeof(InPlaceEnd), by_claim);
  ClaimBatches batches;
  open_batches(&batches, nullptr, 2);
  int next;
  for (int first = 0; first < count; first = next) {
    next = first + 1;
    while (next < count && ends[next].worker_id == ends[first].worker_id &&
           ends[next].token == ends[first].token)
      next++;
    seek_batches(&batches, ends[first].worker_id, &ends[first].token);
    while (next_batch(&batches)) shrink_batch(&batches, ends + first, next - first);
  }
  close_batches(&batches);
}

bool has_in_place_jobs(int64 worker_id, Relation job, Snapshot snapshot) {
  if (!catalog()->has_index_lanes) return false;
  RunningIds ids = {static_cast<int64*>(palloc(sizeof(int64))), 0, 1, 1};
  add_in_place(&ids, job, snapshot, &worker_id);
  return ids.count > 0;
}

}  // namespace pulse

// pulse._index_running(worker_id): see sql/in_place_claim.sql for these three.
PULSE_FUNCTION(pulse_settle_claims) {
  pulse::for_batches_of(PG_GETARG_INT64(0), pulse::index_batch);
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_unlist_ended) {
  using pulse::ClaimBatches;
  ArrayType* array = PG_GETARG_ARRAYTYPE_P_COPY(1);
  auto* ended = reinterpret_cast<int64*>(ARR_DATA_PTR(array));
  int count = ARR_NDIM(array) == 0 ? 0 : ARR_DIMS(array)[0];
  qsort(ended, count, sizeof(int64), pulse::compare_ids);
  int max_count = PG_GETARG_INT32(2);
  int left = 0;
  auto unlist = [&](ClaimBatches* batches, pulse::JobTable*, pulse::IndexLookup* jobs) {
    int running = pulse::count_running(jobs, pulse::read_batch(batches, batches->row), ended, count,
                                       max_count);
    if (running == 0) (void)pulse::try_delete_row(&batches->table, batches->row);
    left += running;
  };
  pulse::for_batches_of(PG_GETARG_INT64(0), unlist);
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

// pulse._has_claims(): reads one entry of two indexes.
PULSE_FUNCTION(pulse_has_claims) {
  Snapshot snapshot = GetActiveSnapshot();
  int64 id;
  pulse::RunningIds ids = {&id, 0, 1, 1};
  Relation job = table_open(pulse::catalog()->job, AccessShareLock);
  pulse::add_indexed(&ids, job, snapshot, nullptr);
  table_close(job, AccessShareLock);
  if (ids.count > 0) PG_RETURN_BOOL(true);
  pulse::ClaimBatches batches;
  pulse::open_batches(&batches, snapshot, 0);
  bool found = pulse::next_batch(&batches);
  pulse::close_batches(&batches);
  PG_RETURN_BOOL(found);
}
