#include "job/key_lock.hpp"

#include "access/catalog.hpp"
#include "job/job_table.hpp"
#include "server/advisory_lock.hpp"
#include "server/shared_memory.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

constexpr int kExactKeys = 256;  // a transaction locks further keys by bucket
constexpr uint64 kBuckets = 256;

int exact_keys = 0;

uint64 key_bucket(uint64 hash) { return (hash >> 40) % kBuckets; }

bool acquire(LockKind kind, uint64 key, LOCKMODE mode, bool wait) {
  if (!wait) return try_advisory_lock(kind, key, mode);
  advisory_lock(kind, key, mode);
  return true;
}

// A lock of one key takes its bucket in share mode, so it conflicts with a lock of the bucket.
bool acquire_key(uint64 hash, bool wait) {
  if (holds_advisory_lock(LockKind::kKey, hash)) return true;
  uint64 bucket = key_bucket(hash);
  if (exact_keys >= kExactKeys) return acquire(LockKind::kKeyBucket, bucket, ExclusiveLock, wait);
  if (!acquire(LockKind::kKeyBucket, bucket, ShareLock, wait)) return false;
  if (!acquire(LockKind::kKey, hash, ExclusiveLock, wait)) return false;
  exact_keys++;
  return true;
}

int by_bucket(const void* a, const void* b) {
  uint64 left = *static_cast<const uint64*>(a);
  uint64 right = *static_cast<const uint64*>(b);
  if (key_bucket(left) != key_bucket(right)) return key_bucket(left) < key_bucket(right) ? -1 : 1;
  return left < right ? -1 : left > right;
}

// Locks many keys in one order for all transactions, so that two callers never deadlock. The order
// is the same for locks of buckets.
void lock_keys(ArrayType* keys) {
  Datum* elements;
  bool* nulls;
  int count;
  deconstruct_array(keys, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &count);
  auto* hashes = static_cast<uint64*>(palloc(sizeof(uint64) * Max(count, 1)));
  int hash_count = 0;
  for (int i = 0; i < count; i++)
    if (!nulls[i]) hashes[hash_count++] = fnv1a(DatumGetTextPP(elements[i]));
  if (exact_keys + hash_count > kExactKeys) exact_keys = kExactKeys;
  qsort(hashes, hash_count, sizeof(uint64), by_bucket);
  for (int i = 0; i < hash_count; i++) acquire_key(hashes[i], true);
}

// A transaction with one snapshot cannot see a job that took the key since it began, and the unique
// index would refuse its job with an error that no client repeats.
bool require_seen(const text* key) {
  if (!IsolationUsesXactSnapshot() || XactReadOnly) return true;
  if (is_key_taken(key, GetLatestSnapshot) && !is_key_taken(key, GetTransactionSnapshot))
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("job_key %s was taken after this transaction had begun",
                           quote_literal_cstr(text_to_cstring(key))),
                    errhint("Repeat the transaction.")));
  return true;
}

}  // namespace

bool is_key_taken(const text* key, Snapshot (*take_snapshot)()) {
  CommandCounterIncrement();
  Snapshot snapshot = RegisterSnapshot(take_snapshot());
  bool is_taken = false;
  Relation table = table_open(catalog()->job, RowExclusiveLock);
  with_row_of_text(table, catalog()->job_waiting_key_idx, PointerGetDatum(key), snapshot,
                   [&is_taken](TupleTableSlot*) { is_taken = true; });
  UnregisterSnapshot(snapshot);
  table_close(table, NoLock);
  return is_taken;
}

void lock_key(const text* key) { acquire_key(fnv1a(key), true); }

bool try_lock_key(const text* key) { return acquire_key(fnv1a(key), false); }

void forget_key_locks() { exact_keys = 0; }

}  // namespace pulse

PULSE_FUNCTION(pulse_lock_key) {
  pulse::lock_key(PG_GETARG_TEXT_PP(0));
  PG_RETURN_BOOL(pulse::require_seen(PG_GETARG_TEXT_PP(0)));
}

PULSE_FUNCTION(pulse_try_lock_key) {
  const text* key = PG_GETARG_TEXT_PP(0);
  PG_RETURN_BOOL(pulse::try_lock_key(key) && pulse::require_seen(key));
}

// pulse_internal.lock_keys(keys): skips nulls.
PULSE_FUNCTION(pulse_lock_keys) {
  pulse::lock_keys(PG_GETARG_ARRAYTYPE_P(0));
  PG_RETURN_BOOL(true);
}
