#include "claim/in_place_claim.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "access/saved_plan.hpp"
#include "job/table.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "shared/memory.hpp"

namespace pulse {

namespace {

// For fewer jobs, the row in pulse.claim_batch and its index entry cost more than the HOT updates
// save. The build with assertions has a smaller number, so that its tests claim in place wherever a
// claim can.
#ifndef PULSE_IN_PLACE_FROM
#define PULSE_IN_PLACE_FROM 8
#endif
constexpr int kMinJobs = PULSE_IN_PLACE_FROM;
// A row of so many ids is not toasted.
constexpr int kMaxPerRow = 200;

// Calls use(row) with the rows that the keys find, until use() returns false.
template <typename Use>
void scan_rows(Relation table, Oid index_oid, Snapshot snapshot, ScanKey keys, int count, Use use) {
  Relation index = index_open(index_oid, AccessShareLock);
  TupleTableSlot* row = table_slot_create(table, nullptr);
  IndexScanDesc scan = begin_index_scan(table, index, snapshot, count);
  index_rescan(scan, keys, count, nullptr, 0);
  do CHECK_FOR_INTERRUPTS();
  while (index_getnext_slot(scan, ForwardScanDirection, row) && use(row));
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  index_close(index, AccessShareLock);
}

ScanKeyData equal_key(int column, int64 value) {
  ScanKeyData key;
  ScanKeyInit(&key, static_cast<AttrNumber>(column), BTEqualStrategyNumber, F_INT8EQ,
              Int64GetDatum(value));
  return key;
}

// As scan_rows(), for an index whose first column is a worker; NULL means all workers.
template <typename Use>
void scan_rows_of(const int64* worker_id, Relation table, Oid index, Snapshot snapshot, Use use) {
  ScanKeyData key = equal_key(1, worker_id ? *worker_id : 0);
  scan_rows(table, index, snapshot, &key, worker_id ? 1 : 0, use);
}

// --- batches ------------------------------------------------------------------------------------

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

// Calls use(job_id) with each job of the batch, until use() returns false.
template <typename Use>
void for_jobs_of(TupleTableSlot* batch, Use use) {
  ArrayType* ids = DatumGetArrayTypeP(value_of(batch, kBatchJobIds));
  int count = ARR_NDIM(ids) == 0 ? 0 : ARR_DIMS(ids)[0];
  for (int i = 0; i < count; i++)
    if (!use(reinterpret_cast<int64*>(ARR_DATA_PTR(ids))[i])) break;
}

// --- completed jobs -----------------------------------------------------------------------------

bool is_same_claim(const InPlaceEnd& a, const InPlaceEnd& b) {
  return a.worker_id == b.worker_id && a.token == b.token;
}

int by_claim(const void* a, const void* b) {
  auto* left = static_cast<const InPlaceEnd*>(a);
  auto* right = static_cast<const InPlaceEnd*>(b);
  if (left->worker_id != right->worker_id) return left->worker_id < right->worker_id ? -1 : 1;
  if (left->token != right->token) return left->token < right->token ? -1 : 1;
  return left->job_id < right->job_id ? -1 : left->job_id > right->job_id;
}

// Counts the batch down by the ended jobs that the batch lists. The ends are of one claim, sorted.
void shrink_batch(JobTable* table, TupleTableSlot* batch, const InPlaceEnd* ends, int count) {
  if (!try_lock_row(table, batch->tts_tid)) return;
  int ended = 0;
  for_jobs_of(table->locked, [&](int64 job_id) {
    InPlaceEnd wanted = {ends->worker_id, ends->token, job_id};
    if (bsearch(&wanted, ends, count, sizeof(InPlaceEnd), by_claim)) ended++;
    return true;
  });
  if (ended == 0) return;
  int remaining = DatumGetInt32(value_of(table->locked, kBatchRemainingJobs)) - ended;
  if (remaining <= 0) {
    (void)try_delete_row(table, table->locked, true);
    return;
  }
  JobChange change = {};
  change.set(kBatchRemainingJobs, Int32GetDatum(remaining));
  update_locked_row(table, &change);
}

// --- running jobs -------------------------------------------------------------------------------

// Adds an id. True while the caller wants more ids.
bool add_id(RunningIds* ids, int64 id) {
  if (ids->count == ids->capacity) {
    ids->capacity *= 2;
    ids->elements =
        static_cast<int64*>(repalloc_huge(ids->elements, sizeof(int64) * ids->capacity));
  }
  ids->elements[ids->count++] = id;
  return ids->count < ids->max_count;
}

bool runs_in_place(TupleTableSlot* job, int64 token) {
  return !slot_attisnull(job, kJobToken) && DatumGetInt64(value_of(job, kJobToken)) == token &&
         DatumGetBool(value_of(job, kJobInPlace)) &&
         DatumGetObjectId(value_of(job, kJobState)) == catalog()->state_running;
}

void add_in_place(RunningIds* ids, Relation job, Snapshot snapshot, const int64* worker_id) {
  IndexLookup jobs;
  open_index_lookup(&jobs, job, catalog()->job_key, snapshot);
  Relation batches = table_open(catalog()->claim_batch, AccessShareLock);
  bool is_wanted = ids->count < ids->max_count;
  auto add_batch = [&](TupleTableSlot* batch) {
    int64 token = DatumGetInt64(value_of(batch, kBatchToken));
    for_jobs_of(batch, [&](int64 id) {
      if (find_id(&jobs, id) && runs_in_place(jobs.row, token)) is_wanted = add_id(ids, id);
      return is_wanted;
    });
    return is_wanted;
  };
  if (is_wanted) scan_rows_of(worker_id, batches, catalog()->claim_batch_idx, snapshot, add_batch);
  table_close(batches, AccessShareLock);
  close_index_lookup(&jobs);
}

}  // namespace

int compare_ids(const void* a, const void* b) {
  int64 left = *static_cast<const int64*>(a);
  int64 right = *static_cast<const int64*>(b);
  return left < right ? -1 : left > right;
}

RunningIds running_ids(const int64* worker_id, int max_count, Relation job, Snapshot snapshot) {
  constexpr int kCapacity = 64;
  RunningIds ids = {static_cast<int64*>(palloc(sizeof(int64) * kCapacity)), 0, kCapacity,
                    max_count};
  if (max_count <= 0) return ids;
  auto add_row = [&](TupleTableSlot* row) {
    return add_id(&ids, DatumGetInt64(value_of(row, kJobId)));
  };
  scan_rows_of(worker_id, job, catalog()->job_running_idx, snapshot, add_row);
  if (catalog()->has_index_lanes) add_in_place(&ids, job, snapshot, worker_id);
  return ids;
}

bool has_running_jobs(int64 worker_id, Relation job, Snapshot snapshot) {
  return running_ids(&worker_id, 1, job, snapshot).count > 0;
}

bool claims_stay_in_place(int max_jobs) {
  return max_jobs >= kMinJobs && catalog()->has_index_lanes && this_database() && is_preloaded();
}

void index_running_now_and_then(int64 worker_id) {
  constexpr int64 kIntervalUs = 10000000;
  static int64 last_worker = 0;
  static TimestampTz last_at = 0;
  static SavedPlan query = {"SELECT pulse_internal.index_running($1)", 1, {INT8OID}, nullptr};
  TimestampTz now = wall_now();
  if (worker_id == last_worker && now - last_at < kIntervalUs && now >= last_at) return;
  JobTable batches;
  open_extension_table(&batches, catalog()->claim_batch);
  bool has_batch = false;
  scan_rows_of(&worker_id, batches.relation, catalog()->claim_batch_idx, batches.snapshot,
               [&has_batch](TupleTableSlot*) { return !(has_batch = true); });
  close_job_table(&batches);
  NullableDatum argument = {Int64GetDatum(worker_id), false};
  if (has_batch) (void)value_of_query(&query, &argument);
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
  JobTable table;
  open_extension_table(&table, catalog()->claim_batch);
  int next;
  for (int first = 0; first < count; first = next) {
    next = first + 1;
    while (next < count && is_same_claim(ends[first], ends[next])) next++;
    ScanKeyData keys[] = {equal_key(kBatchWorkerId, ends[first].worker_id),
                          equal_key(kBatchToken, ends[first].token)};
    auto shrink = [&](TupleTableSlot* batch) {
      shrink_batch(&table, batch, ends + first, next - first);
      return true;
    };
    scan_rows(table.relation, catalog()->claim_batch_idx, table.snapshot, keys, 2, shrink);
  }
  close_job_table(&table);
}

}  // namespace pulse

// pulse_internal.running_ids(worker_id, max_count): see sql/worker/in_place_claim.sql.
PULSE_FUNCTION(pulse_running_ids) {
  int64 worker_id = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0);
  const int64* only = PG_ARGISNULL(0) ? nullptr : &worker_id;
  int max_count = PG_ARGISNULL(1) ? PG_INT32_MAX : PG_GETARG_INT32(1);
  Relation job = table_open(pulse::catalog()->job, AccessShareLock);
  pulse::RunningIds ids = pulse::running_ids(only, max_count, job, GetActiveSnapshot());
  table_close(job, AccessShareLock);
  return pulse::array_of(ids.elements, ids.count);
}
