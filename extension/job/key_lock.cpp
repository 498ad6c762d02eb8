#include "job/key_lock.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/saved_plan.hpp"
#include "access/table_locks.hpp"
#include "job/producer.hpp"
#include "job/table.hpp"
#include "server/advisory_lock.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

constexpr uint64 kAnyJob = 0;

// The jobs that have a key, with the changes that other transactions have not committed.
struct KeyReading {
  ItemPointerData waiting;  // a job that waits, and stays live whatever becomes of a change
  bool is_superseded;       // the job that the caller asked for has lost the key
  TransactionId changer;    // another transaction in progress that adds, changes, locks or removes
  bool is_strangers;        // the asking producer may not name the waiting job
};

// The producer that asks for a key, and what the call does where a job of another producer has the
// key.
struct Asking {
  NullableDatum producer;
  bool refuses;  // true: the call raises an error; false: the call answers as for a key without a
                 // job
};

bool has_waiting(const KeyReading& reading) { return ItemPointerIsValid(&reading.waiting); }

void hold_key(uint64 hash) {
  if (!holds_advisory_lock(LockKind::kKey, hash, ExclusiveLock))
    advisory_lock(LockKind::kKey, hash, ExclusiveLock);
}

bool try_key(uint64 hash) {
  return holds_advisory_lock(LockKind::kKey, hash, ExclusiveLock) ||
         try_advisory_lock(LockKind::kKey, hash, ExclusiveLock);
}

void release_key(uint64 hash) {
  if (holds_advisory_lock(LockKind::kKey, hash, ExclusiveLock))
    release_advisory_lock(LockKind::kKey, hash, ExclusiveLock);
}

// Calls use(row) with each row of the key that the snapshot shows.
template <typename Use>
void with_rows_of_key(Oid relation, Oid index, const text* key, Snapshot snapshot, Use use) {
  Relation table = table_open(relation, RowExclusiveLock);
  IndexLookup rows;
  open_index_lookup(&rows, table, index, snapshot, 1);
  ScanKeyData equal;
  init_text_key(&equal, 1, BTEqualStrategyNumber, F_TEXTEQ, PointerGetDatum(key));
  seek_keys(&rows, &equal);
  while (next_row(&rows)) use(rows.row);
  close_index_lookup(&rows);
  table_close(table, NoLock);
}

// A row that a transaction in progress updates has a successor; a row that a transaction deletes
// has no successor.
bool has_successor(TupleTableSlot* seen) {
  HeapTuple tuple = reinterpret_cast<BufferHeapTupleTableSlot*>(seen)->base.tuple;
  return !ItemPointerEquals(&tuple->t_data->t_ctid, &tuple->t_self);
}

bool is_strangers(TupleTableSlot* job, const Asking* asking) {
  return asking && !may_name(field_of(job, kJobAddedBy), asking->producer);
}

void read_waiting(const text* key, SnapshotData* dirty, const Asking* asking, KeyReading* reading) {
  with_rows_of_key(
      catalog()->job, catalog()->job_waiting_key_idx, key, dirty, [&](TupleTableSlot* row) {
        TransactionId adder = dirty->xmin;
        TransactionId changer = TransactionIdIsValid(dirty->xmax) ? dirty->xmax : locker_of(row);
        bool goes_on = !TransactionIdIsValid(dirty->xmax) || has_successor(row);
        bool is_committed = !TransactionIdIsValid(adder) && goes_on;
        if (is_committed) reading->waiting = row->tts_tid;
        // A removal finds no job of its producer, whether or not the stranger's uncommitted add
        // commits.
        if (is_committed || (asking && !asking->refuses && TransactionIdIsValid(adder)))
          reading->is_strangers = is_strangers(row, asking);
        if (TransactionIdIsValid(adder)) reading->changer = adder;
        if (TransactionIdIsValid(changer)) reading->changer = changer;
      });
}

// The end of an attempt waits for no table of keys: the sweep after the lock decides.
bool try_lock_superseded() { return try_lock_table(catalog()->superseded_job, RowExclusiveLock); }

// Usually the table has no page, and a descent of the index costs more than a reading of the
// table's size.
bool any_superseded() {
  Relation table = table_open(catalog()->superseded_job, RowExclusiveLock);
  bool any = RelationGetNumberOfBlocks(table) > 0;
  table_close(table, NoLock);
  return any;
}

void read_superseded(const text* key, int64 job_id, SnapshotData* dirty, KeyReading* reading) {
  if (!any_superseded()) return;
  with_rows_of_key(catalog()->superseded_job, catalog()->superseded_job_key, key, dirty,
                   [&](TupleTableSlot* row) {
                     bool is_of_job = DatumGetInt64(value_of(row, kSupersededJobId)) == job_id;
                     bool is_own = !TransactionIdIsValid(dirty->xmin);
                     reading->is_superseded |= is_own && is_of_job;
                     if (!is_own) reading->changer = dirty->xmin;
                   });
}

KeyReading read_key(const text* key, int64 job_id = kAnyJob, const Asking* asking = nullptr) {
  KeyReading reading = {};
  ItemPointerSetInvalid(&reading.waiting);
  SnapshotData dirty;
  InitDirtySnapshot(dirty);
  read_waiting(key, &dirty, asking, &reading);
  read_superseded(key, job_id, &dirty, &reading);
  return reading;
}

// Finds the waiting job that the transaction's snapshot shows, where all statements of the
// transaction have one snapshot.
bool find_in_old_snapshot(const text* key, ItemPointer waiting) {
  if (!IsolationUsesXactSnapshot()) return false;
  bool is_found = false;
  Snapshot snapshot = GetTransactionSnapshot();
  Relation table = table_open(catalog()->job, RowExclusiveLock);
  with_row_of_text(table, catalog()->job_waiting_key_idx, PointerGetDatum(key), snapshot,
                   [&](TupleTableSlot* row) {
                     is_found = true;
                     *waiting = row->tts_tid;
                   });
  table_close(table, NoLock);
  return is_found;
}

bool is_key_taken(const text* key) {
  CommandCounterIncrement();
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  bool is_taken = false;
  Relation table = table_open(catalog()->job, RowExclusiveLock);
  with_row_of_text(table, catalog()->job_waiting_key_idx, PointerGetDatum(key), snapshot,
                   [&is_taken](TupleTableSlot*) { is_taken = true; });
  UnregisterSnapshot(snapshot);
  table_close(table, NoLock);
  return is_taken;
}

// A transaction with one snapshot cannot see a job that took the key since the snapshot was taken.
// The unique index would refuse the transaction's own job with an error that no client repeats.
// Requires the key's lock.
void require_seen(const text* key, const KeyReading& reading) {
  Assert(holds_advisory_lock(LockKind::kKey, fnv1a(key), ExclusiveLock));
  if (!has_waiting(reading) || !IsolationUsesXactSnapshot()) return;
  CommandCounterIncrement();
  ItemPointerData seen;
  if (find_in_old_snapshot(key, &seen)) return;
  ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                  errmsg("job_key %s was taken after this transaction had begun",
                         quote_literal_cstr(text_to_cstring(key))),
                  errhint("Repeat the transaction.")));
}

// The reading of a key that a stranger has: nothing that the asking producer may change.
KeyReading answer_stranger(const text* key, KeyReading reading, const Asking& asking) {
  if (asking.refuses) refuse_key(key);
  ItemPointerSetInvalid(&reading.waiting);
  return reading;
}

// Takes the lock once no other transaction in progress changes a job under the key. A waiting job
// that stays live whether or not the changer commits is `enough` not to wait. A stranger's job is
// judged without a wait for the transactions that change it, because its producer stays the same.
KeyReading lock_key(const text* key, bool waiting_is_enough, const Asking& asking) {
  PreventCommandIfReadOnly("a change under a job key");
  uint64 hash = fnv1a(key);
  for (;;) {
    hold_key(hash);
    KeyReading reading = read_key(key, kAnyJob, &asking);
    if (reading.is_strangers) return answer_stranger(key, reading, asking);
    if (!TransactionIdIsValid(reading.changer) || (waiting_is_enough && has_waiting(reading))) {
      require_seen(key, reading);
      return reading;
    }
    release_key(hash);
    XactLockTableWait(reading.changer, nullptr, nullptr, XLTW_None);
  }
}

bool try_lock_key(const text* key) {
  uint64 hash = fnv1a(key);
  if (!try_key(hash)) return false;
  KeyReading reading = read_key(key);
  if (!TransactionIdIsValid(reading.changer)) {
    require_seen(key, reading);
    return true;
  }
  release_key(hash);
  return false;
}

// Jobs that have the key and have not lost it yet, and that run or whose key is undecided.
// Strangers' jobs are refused or left out.
ArrayBuildState* jobs_to_supersede(const text* key, const Asking& asking) {
  ArrayBuildState* ids = nullptr;
  SnapshotData dirty;
  InitDirtySnapshot(dirty);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  with_rows_of_key(catalog()->job, catalog()->job_running_key_idx, key, snapshot,
                   [&](TupleTableSlot* row) {
                     Datum id = value_of(row, kJobId);
                     KeyReading reading = {};
                     read_superseded(key, DatumGetInt64(id), &dirty, &reading);
                     if (reading.is_superseded) return;
                     if (is_strangers(row, &asking)) {
                       if (asking.refuses) refuse_key(key);
                       return;
                     }
                     ids = accumArrayResult(ids, id, false, INT8OID, CurrentMemoryContext);
                   });
  UnregisterSnapshot(snapshot);
  return ids;
}

text* key_of(TupleTableSlot* job) { return DatumGetTextPP(value_of(job, kJobKey)); }

}  // namespace

KeyStanding try_lock_key_of(TupleTableSlot* job) {
  // The functions of 0.1.0 write into the row.
  if (DatumGetBool(value_of(job, kJobSuperseded))) return KeyStanding::kTaken;
  if (slot_attisnull(job, kJobKey)) return KeyStanding::kFree;
  text* key = key_of(job);
  if (!catalog()->has_index_lanes)
    return is_key_taken(key) ? KeyStanding::kTaken : KeyStanding::kFree;
  uint64 hash = fnv1a(key);
  bool was_held = holds_advisory_lock(LockKind::kKey, hash, ExclusiveLock);
  if (!try_lock_superseded() || !try_key(hash)) return KeyStanding::kUndecided;
  KeyReading reading = read_key(key, DatumGetInt64(value_of(job, kJobId)));
  bool is_taken = reading.is_superseded || has_waiting(reading);
  if (!is_taken && !TransactionIdIsValid(reading.changer)) return KeyStanding::kFree;
  if (!was_held) release_key(hash);
  return is_taken ? KeyStanding::kTaken : KeyStanding::kUndecided;
}

void unlock_key_of(TupleTableSlot* job) {
  if (!slot_attisnull(job, kJobKey) && catalog()->has_index_lanes) release_key(fnv1a(key_of(job)));
}

bool forget_superseded(TupleTableSlot* job) {
  if (slot_attisnull(job, kJobKey) || !catalog()->has_index_lanes) return false;
  if (!try_lock_superseded() || !any_superseded()) return false;
  static SavedPlan query = {
      "SELECT pulse_internal.forget_superseded($1, $2)", 2, {TEXTOID, INT8OID}, nullptr};
  Datum id = value_of(job, kJobId);
  bool is_recorded = false;
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  Relation table = table_open(catalog()->superseded_job, RowExclusiveLock);
  with_row_of_text(table, catalog()->superseded_job_key, value_of(job, kJobKey), snapshot,
                   [&is_recorded](TupleTableSlot*) { is_recorded = true; });
  table_close(table, NoLock);
  UnregisterSnapshot(snapshot);
  NullableDatum arguments[] = {{value_of(job, kJobKey), false}, {id, false}};
  return is_recorded && DatumGetBool(value_of_query(&query, arguments).value);
}

bool lock_key_for_0_1_0(const text* key, bool waits) {
  uint64 hash = fnv1a(key);
  if (!waits) return try_key(hash);
  hold_key(hash);
  return true;
}

}  // namespace pulse

// pulse_internal.lock_key(job_key, asking, waiting_is_enough, refuses): the place of the job that
// waits.
PULSE_FUNCTION(pulse_lock_job_key) {
  if (PG_ARGISNULL(0)) PG_RETURN_NULL();
  const text* key = PG_GETARG_TEXT_PP(0);
  pulse::Asking asking = {fcinfo->args[1], PG_GETARG_BOOL(3)};
  pulse::KeyReading reading = pulse::lock_key(key, PG_GETARG_BOOL(2), asking);
  if (reading.is_strangers) PG_RETURN_NULL();
  // In a transaction with one snapshot, the caller reads the waiting job that the snapshot shows,
  // and fails there if another transaction has changed the job since.
  if (!pulse::has_waiting(reading) && !pulse::find_in_old_snapshot(key, &reading.waiting))
    PG_RETURN_NULL();
  auto* waiting = static_cast<ItemPointer>(palloc(sizeof(ItemPointerData)));
  *waiting = reading.waiting;
  PG_RETURN_POINTER(waiting);
}

PULSE_FUNCTION(pulse_try_lock_job_key) {
  PG_RETURN_BOOL(pulse::try_lock_key(PG_GETARG_TEXT_PP(0)));
}

PULSE_FUNCTION(pulse_unlock_job_key) {
  pulse::release_key(pulse::fnv1a(PG_GETARG_TEXT_PP(0)));
  PG_RETURN_BOOL(true);
}

// pulse_internal.changer_of_key(job_key)
PULSE_FUNCTION(pulse_changer_of_key) {
  TransactionId changer = pulse::read_key(PG_GETARG_TEXT_PP(0)).changer;
  if (!TransactionIdIsValid(changer)) PG_RETURN_NULL();
  PG_RETURN_TRANSACTIONID(changer);
}

// pulse_internal.jobs_to_supersede(job_key, asking, refuses)
PULSE_FUNCTION(pulse_jobs_to_supersede) {
  if (PG_ARGISNULL(0)) PG_RETURN_NULL();
  pulse::Asking asking = {fcinfo->args[1], PG_GETARG_BOOL(2)};
  ArrayBuildState* ids = pulse::jobs_to_supersede(PG_GETARG_TEXT_PP(0), asking);
  if (!ids) PG_RETURN_NULL();
  PG_RETURN_DATUM(makeArrayResult(ids, CurrentMemoryContext));
}

// --- for the functions of 0.1.0 -----------------------------------------------------------------

PULSE_FUNCTION(pulse_lock_key) {
  const text* key = PG_GETARG_TEXT_PP(0);
  PG_RETURN_BOOL(pulse::lock_key_for_0_1_0(key, true));
}

PULSE_FUNCTION(pulse_try_lock_key) {
  PG_RETURN_BOOL(pulse::lock_key_for_0_1_0(PG_GETARG_TEXT_PP(0), false));
}

// Locks many keys in one order for all transactions, so that two callers never deadlock.
PULSE_FUNCTION(pulse_lock_keys) {
  int count;
  Datum* elements;
  bool* nulls;
  deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls,
                    &count);
  auto* hashes = static_cast<uint64*>(palloc(sizeof(uint64) * Max(count, 1)));
  int hash_count = 0;
  for (int i = 0; i < count; i++)
    if (!nulls[i]) hashes[hash_count++] = pulse::fnv1a(DatumGetTextPP(elements[i]));
  qsort(hashes, hash_count, sizeof(uint64), [](const void* a, const void* b) {
    uint64 left = *static_cast<const uint64*>(a);
    uint64 right = *static_cast<const uint64*>(b);
    return left < right ? -1 : static_cast<int>(left > right);
  });
  for (int i = 0; i < hash_count; i++) pulse::hold_key(hashes[i]);
  PG_RETURN_BOOL(true);
}
