#include "liveness/ended_sessions.hpp"

namespace pulse {
namespace {

EndBucket* bucket_of(EndBucket* buckets, int count, Oid database, uint64 attachment) {
  return &buckets[(attachment + database) % static_cast<uint64>(count)];
}

}  // namespace

void init_end_buckets(EndBucket* buckets, int count) {
  memset(buckets, 0, count * sizeof(EndBucket));
  for (int i = 0; i < count; i++) SpinLockInit(&buckets[i].lock);
}

void note_ended(EndBucket* buckets, int count, const EndedSession& end) {
  EndBucket* bucket = bucket_of(buckets, count, end.database, end.attachment);
  SpinLockAcquire(&bucket->lock);
  bucket->end[bucket->noted++ % kEndsPerBucket] = end;
  SpinLockRelease(&bucket->lock);
}

bool find_end(EndBucket* buckets, int count, Oid database, uint64 attachment, EndedSession* end) {
  EndBucket* bucket = bucket_of(buckets, count, database, attachment);
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
