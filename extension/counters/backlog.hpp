// The backlog of a database: how many due jobs waited for a worker, a place or a token, a reading a
// minute for the last 18 minutes, in shared memory of a preloaded server. Sweeps take the readings
// (sql/monitor/backlog.sql), and doctor() tells of a backlog that grows.
//
// Invariants:
// - The readings of a backlog are of one table, `job`, in the order of their times, and at least
//   kReadingUs apart. Guard: depths_lock.
// - A session adds a reading with the advisory lock kBacklog, so no minute has two readings.
// - The reset of a database entry forgets the readings.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kBacklogReadings = 20;

struct BacklogReading {
  TimestampTz at;  // as the wall clock of the extension: moved by pulse.clock_offset
  int64 jobs;
};

// Guard of all fields: depths_lock.
struct Backlog {
  Oid job;  // the counted table; InvalidOid: no reading yet
  int count;
  BacklogReading readings[kBacklogReadings];
};

// Whether a sweep is to add a reading now: commits have counted all jobs, and the last reading is a
// minute old. The session then has the advisory lock until the transaction ends.
bool begin_backlog_reading();
void add_backlog_reading(int64 jobs);

// Whether this session takes a reading, so that the session is no reader of depths who asks for
// recounts.
bool is_reading_backlog();

// Copies the readings of this database into an array of kBacklogReadings; returns how many.
int read_backlog(BacklogReading* readings);

}  // namespace pulse
