// What is remembered of attached sessions that ended: which of them the server ended, and when the
// others did. Written while their locks are still held, so that whoever finds a lock free finds
// this as well; who does not find it has met a lock that was let go of by other means.
#pragma once

#include "prelude.hpp"

namespace pulse {

constexpr int kExcusedEnds = 256;
constexpr int kTimedEnds = 256;

struct TimedEnd {
  uint64 attachment;
  TimestampTz at;
  int64 offset_us;  // the session's pulse.clock_offset
};

// Of one database. The lock is held for one pass over an array, and nothing raises under it.
struct EndedSessions {
  slock_t lock;
  uint64 excused_count;          // ever; the newest are kept
  uint64 excused[kExcusedEnds];  // ended by the server: that says nothing about the worker
  uint64 timed_count;            // ever; the newest are kept
  TimedEnd timed[kTimedEnds];    // ended by their clients
};

void forget_ended_sessions(EndedSessions* ended);

// May run in exit callbacks.
void note_excused(EndedSessions* ended, uint64 attachment);
void note_ended(EndedSessions* ended, const TimedEnd& end);

// Whether its client ended the session, rather than the server or an administrator, or nobody. When
// more ended than are remembered, that is sure of none that the server may have ended.
bool is_ended_by_client(EndedSessions* ended, uint64 attachment);

// When the session's client ended it; false where that is not known or not remembered.
bool find_end(EndedSessions* ended, uint64 attachment, TimedEnd* end);

}  // namespace pulse
