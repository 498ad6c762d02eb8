// Levels of a queue's name: 'mail/tenant-7' is within 'mail'. A name has at most four levels; any
// text after the third slash belongs to the last level.
#pragma once

#include "server/postgres.hpp"
#include "server/values.hpp"
#include "shared/hashes.hpp"

namespace pulse {

constexpr int kMaxLevels = 4;

// The names of the levels are the beginnings of the queue's name with these lengths, root first.
struct LevelNames {
  int count;
  int length[kMaxLevels];
};

inline LevelNames level_names(const text* name) {
  LevelNames names = {};
  int length = static_cast<int>(VARSIZE_ANY_EXHDR(name));
  for (int i = 0; i < length && names.count < kMaxLevels - 1; i++)
    if (VARDATA_ANY(name)[i] == '/') names.length[names.count++] = i;
  names.length[names.count++] = length;
  return names;
}

// Raises PU004 for a name that no new job may have as its queue.
void check_queue_name(text* name);

inline int level_group(uint64 hash) {
  return static_cast<int>((hash ^ (hash >> 32)) % kLevelGroups);
}

// The place that the end of a job of this queue frees: the bucket of the queue mark, and the
// groups of the queue's levels.
struct QueuePlace {
  uint64 hash;
  int bucket;
  uint64 level_groups;
};

inline QueuePlace place_in_queue(const text* name) {
  QueuePlace place = {fnv1a(name), queue_bucket(name), 0};
  LevelNames levels = level_names(name);
  for (int i = 0; i < levels.count; i++)
    place.level_groups |= UINT64CONST(1) << level_group(fnv1a(VARDATA_ANY(name), levels.length[i]));
  return place;
}

// A hash that identifies the queue or level in this job table.
uint64 queue_identity(Datum name);

}  // namespace pulse
