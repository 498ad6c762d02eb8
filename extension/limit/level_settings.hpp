// Settings and pauses that operators have stored for a level of queues, read from the tables.
// sql/queue/level.sql reads both once more.
#pragma once

#include "limit/rate.hpp"
#include "server/postgres.hpp"

namespace pulse {

constexpr int kUnlimited = -1;

// Where the settings of a level are stored.
enum class SettingsRow {
  kNone,     // the settings are the defaults
  kMembers,  // for all members of the level above (`level/*`)
  kOwn
};

struct LevelSettings {
  SettingsRow row;
  int concurrency;
  int total;  // kUnlimited
  bool paused;
  bool paused_by_end;  // the end of a job has paused the queue, if strict
  bool strict;
  bool fair;
  int weight;
  Rate rate;
};

// The tables are open as long as a promotion or an explanation reads the levels of a queue.
struct SettingsReader {
  Relation queue;
  Relation pause;  // null: nothing is paused, or 0.1.0 is installed
  Snapshot snapshot;
};
SettingsReader open_settings(Snapshot snapshot);
void close_settings(const SettingsReader& reader);

// Reads the settings of the level `name` below `parent` (0: the level is the root). is_queue: the
// level is the queue itself.
LevelSettings settings_of_level(const SettingsReader& reader, Datum name, Datum parent,
                                bool is_queue);

// The weight stored for the members of the level (`level/*`); 0: none is stored.
int weight_of_members(const SettingsReader& reader, Datum level);

}  // namespace pulse
