#include "liveness/ended_sessions.hpp"

#include "server/shared_memory.hpp"

namespace pulse {
namespace {

constexpr int kEndsPerBucket = 8;

struct EndBucket {
  slock_t lock;
  uint32 noted;  // number of ends ever noted; the bucket keeps the newest
  EndedSession end[kEndsPerBucket];
};

constexpr int kPreloadedBuckets = 512;
constexpr int kSlackBuckets = 64;

EndBucket* buckets = nullptr;
int bucket_count = 0;

void init_buckets(void* area, Size size) {
  memset(area, 0, size);
  auto* all = static_cast<EndBucket*>(area);
  for (Size i = 0; i < size / sizeof(EndBucket); i++) SpinLockInit(&all[i].lock);
}

// Consecutive numbers go to different buckets, so an entry is overwritten only after about as many
// ends as all buckets keep.
EndBucket* bucket_of(Oid database, uint64 attachment) {
  return &buckets[(attachment + database) % static_cast<uint64>(bucket_count)];
}

}  // namespace

Size ended_sessions_size() { return kPreloadedBuckets * sizeof(EndBucket); }

void create_ended_sessions() {
  buckets = static_cast<EndBucket*>(
      shared_area("pg_pulse ended sessions", ended_sessions_size(), init_buckets));
  bucket_count = kPreloadedBuckets;
}

void find_ended_sessions() {
  if (buckets || !shared()) return;
  buckets = static_cast<EndBucket*>(
      area_of_slack("pg_pulse ended sessions", kSlackBuckets * sizeof(EndBucket), init_buckets));
  bucket_count = kSlackBuckets;
}

void note_ended(const EndedSession& end) {
  if (!buckets) return;
  EndBucket* bucket = bucket_of(end.database, end.attachment);
  SpinLockAcquire(&bucket->lock);
  bucket->end[bucket->noted++ % kEndsPerBucket] = end;
  SpinLockRelease(&bucket->lock);
}

bool find_end(Oid database, uint64 attachment, EndedSession* end) {
  find_ended_sessions();
  if (!buckets) return false;
  EndBucket* bucket = bucket_of(database, attachment);
  bool found = false;
  SpinLockAcquire(&bucket->lock);
  for (const EndedSession& noted : bucket->end) {
    if (noted.database != database || noted.attachment != attachment) continue;
    *end = noted;
    found = true;
    break;
  }
  SpinLockRelease(&bucket->lock);
  return found;
}

}  // namespace pulse
