#include "claim/claim_count.hpp"

#include "server/advisory_lock.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

constexpr uint64 kCounts = 4096;

pg_atomic_uint64* counts = nullptr;

// Ids of one database are dense, those of several begin alike.
pg_atomic_uint64* count_of(int64 worker_id) {
  uint64 mixed = static_cast<uint64>(worker_id) + UINT64CONST(0x9E3779B1) * MyDatabaseId;
  return &counts[mixed % kCounts];
}

}  // namespace

Size claim_counts_size() { return kCounts * sizeof(pg_atomic_uint64); }

void create_claim_counts() {
  counts = static_cast<pg_atomic_uint64*>(
      shared_area("pg_pulse claim counts", claim_counts_size(), [](void* area, Size) {
        for (uint64 i = 0; i < kCounts; i++)
          pg_atomic_init_u64(&static_cast<pg_atomic_uint64*>(area)[i], 0);
      }));
}

void begin_claim(int64 worker_id) {
  advisory_lock(LockKind::kWorker, static_cast<uint64>(worker_id), ShareLock);
  if (counts) pg_atomic_fetch_add_u64(count_of(worker_id), 1);
}

bool read_claim_count(int64 worker_id, uint64* count) {
  if (!counts) return false;
  *count = pg_atomic_read_u64(count_of(worker_id));
  pg_memory_barrier();  // what is looked at next is as new as the count
  return true;
}

// One that began before has the worker's lock to its end, also when it was prepared.
bool claims_have_ended(int64 worker_id) {
  return advisory_lock_is_free(LockKind::kWorker, static_cast<uint64>(worker_id));
}

}  // namespace pulse

// pulse._lock_worker_shared(id): what claim() does itself.
PULSE_FUNCTION(pulse_share_worker) {
  pulse::begin_claim(PG_GETARG_INT64(0));
  PG_RETURN_BOOL(true);
}
