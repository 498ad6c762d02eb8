// Settings and pauses that operators have stored for the levels of a queue, read from the tables.
// sql/queue/level.sql reads both once more.
#pragma once

#include "limit/rate.hpp"
#include "server/postgres.hpp"

namespace pulse {

constexpr int kUnlimited = -1;

struct LevelSettings {
  int concurrency;
  int total;  // kUnlimited
  bool paused;
  bool paused_by_end;  // the end of a job has paused the queue, if strict
  bool strict;
  bool fair;
  int weight;  // of the queue: the weight beneath the first fair level; 1: no level above is fair
  Rate rate;
};

// Reads the settings of the levels with these names, root first. The last level is the queue.
void read_settings(Snapshot snapshot, const Datum* names, int count, LevelSettings* settings);

}  // namespace pulse
