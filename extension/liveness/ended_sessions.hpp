// Which attached sessions were ended by their clients, and when: it is noted while their locks are
// still held, so that whoever finds a lock free finds this as well. What is not found here was
// ended by the server or an administrator, or has let go of its locks without an end.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Numbers that follow each other lie in different buckets, so that only as many as fit into all
// of them push out another.
constexpr int kEndsPerBucket = 8;
constexpr int kLazyEndBuckets = 64;
constexpr int kPreloadedEndBuckets = 512;

struct EndedSession {
  Oid database;  // 0: free
  uint64 attachment;
  TimestampTz at;
  int64 offset_us;  // the session's pulse.clock_offset
};

struct EndBucket {
  slock_t lock;
  uint32 noted;  // ever; the newest are kept
  EndedSession end[kEndsPerBucket];
};

void init_end_buckets(EndBucket* buckets, int count);

// May run in an exit callback.
void note_ended(EndBucket* buckets, int count, const EndedSession& end);

// False where it is not known that the client of this session ended it.
bool find_end(EndBucket* buckets, int count, Oid database, uint64 attachment, EndedSession* end);

}  // namespace pulse
