// The backlog of a database: how many jobs are due and wait for a worker, a place or a token. A
// sweep takes a reading each minute (sql/monitor/backlog.sql). Shared memory of a preloaded server
// keeps the readings of the last 18 minutes, by which doctor() tells of a backlog that grows.
//
// Invariants:
// - All readings of a backlog count the same table, `job`. The readings stand in the order of their
//   times, at least kReadingUs apart. Guard: depths_lock.
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

// Whether this session takes a reading, so that it is no reader of depths that asks for recounts.
bool is_reading_backlog();

// Copies the readings of this database into an array of kBacklogReadings; returns how many.
int read_backlog(BacklogReading* readings);

}  // namespace pulse
