// Which attached sessions were ended by their clients, and when: it is noted while their locks are
// still held, so that whoever finds a lock free finds this as well. What is not found here was
// ended by the server or an administrator, or has let go of its locks without an end.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct EndedSession {
  Oid database;  // 0: free
  uint64 attachment;
  TimestampTz at;
  int64 offset_us;  // the session's pulse.clock_offset
};

Size ended_sessions_size();
void create_ended_sessions();

// Before a session of this backend may be noted: takes the area where the server did not preload
// this library.
void find_ended_sessions();

// May run in an exit callback.
void note_ended(const EndedSession& end);

// False where it is not known that the client of this session ended it.
bool find_end(Oid database, uint64 attachment, EndedSession* end);

}  // namespace pulse
