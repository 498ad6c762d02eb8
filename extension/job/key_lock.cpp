#include "job/key_lock.hpp"

#include "server/advisory_lock.hpp"
#include "server/hash.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

constexpr int kExactKeys = 256;  // a transaction locks further keys by bucket
constexpr uint64 kBuckets = 256;

int exact_keys = 0;
uint64 held_buckets[kBuckets / 64];

uint64 hash_of(const text* key) { return fnv1a(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)); }

uint64 key_bucket(uint64 hash) { return (hash >> 40) % kBuckets; }

bool holds_bucket(uint64 bucket) { return (held_buckets[bucket / 64] >> (bucket % 64)) & 1; }

bool acquire(LockKind kind, uint64 key, LOCKMODE mode, bool wait) {
  if (!wait) return try_advisory_lock(kind, key, mode);
  advisory_lock(kind, key, mode);
  return true;
}

bool acquire_bucket(uint64 bucket, bool wait) {
  if (holds_bucket(bucket)) return true;
  if (!acquire(LockKind::kKeyBucket, bucket, ExclusiveLock, wait)) return false;
  held_buckets[bucket / 64] |= UINT64CONST(1) << (bucket % 64);
  return true;
}

// A lock of one key takes its bucket in share mode, so it conflicts with a lock of the bucket.
bool acquire_key(uint64 hash, bool wait) {
  uint64 bucket = key_bucket(hash);
  if (holds_bucket(bucket)) return true;
  if (exact_keys >= kExactKeys) return acquire_bucket(bucket, wait);
  if (!acquire(LockKind::kKeyBucket, bucket, ShareLock, wait)) return false;
  if (!acquire(LockKind::kKey, hash, ExclusiveLock, wait)) return false;
  exact_keys++;
  return true;
}

int compare_hashes(const void* a, const void* b) {
  uint64 left = *static_cast<const uint64*>(a);
  uint64 right = *static_cast<const uint64*>(b);
  return left < right ? -1 : left > right;
}

}  // namespace

void lock_key(const text* key) { acquire_key(hash_of(key), true); }

bool try_lock_key(const text* key) { return acquire_key(hash_of(key), false); }

void lock_keys(const Datum* keys, int count) {
  auto* hashes = static_cast<uint64*>(palloc(sizeof(uint64) * Max(count, 1)));
  bool by_bucket = exact_keys + count > kExactKeys;
  for (int i = 0; i < count; i++) {
    uint64 hash = hash_of(DatumGetTextPP(keys[i]));
    hashes[i] = by_bucket ? key_bucket(hash) : hash;
  }
  qsort(hashes, count, sizeof(uint64), compare_hashes);
  for (int i = 0; i < count; i++) {
    if (i > 0 && hashes[i] == hashes[i - 1]) continue;
    by_bucket ? acquire_bucket(hashes[i], true) : acquire_key(hashes[i], true);
  }
}

void forget_key_locks() {
  exact_keys = 0;
  memset(held_buckets, 0, sizeof(held_buckets));
}

}  // namespace pulse

PULSE_FUNCTION(pulse_lock_key) {
  pulse::lock_key(PG_GETARG_TEXT_PP(0));
  PG_RETURN_BOOL(true);
}

PULSE_FUNCTION(pulse_try_lock_key) { PG_RETURN_BOOL(pulse::try_lock_key(PG_GETARG_TEXT_PP(0))); }

// pulse._lock_keys(keys): skips nulls.
PULSE_FUNCTION(pulse_lock_keys) {
  Datum* elements;
  bool* nulls;
  int count;
  deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls,
                    &count);
  int keys = 0;
  for (int i = 0; i < count; i++)
    if (!nulls[i]) elements[keys++] = elements[i];
  pulse::lock_keys(elements, keys);
  PG_RETURN_BOOL(true);
}
