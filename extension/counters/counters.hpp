// Counters of attempts per task and per queue, in shared memory: how many attempts started and
// ended, for how long they had been due, and for how long they ran. A counter has a ring of periods
// of 10 seconds. Sweeps add each minute that is over to pulse.counter.
//
// Invariants:
// - Each count is in one counter: in the counter of the name, or in the counter of further names. A
//   name that finds no free counter is counted with further names, so no number of names costs
//   memory. Commits count under the spinlock of the counter.
// - A counter belongs to the name of its key. A session takes a counter under the spinlock of the
//   kind, where no attempt of the counter's name was counted for two minutes. The reset of a
//   database entry frees the counters of the database.
// - A commit whose counter has another name since counts with further names.
// - A sweep that adds a minute holds the advisory lock kCounters until the commit, which sets
//   `added_minute`.
#pragma once

#include "counters/histogram.hpp"
#include "server/postgres.hpp"

namespace pulse {

enum CounterKind : uint8 { kTaskCounter, kQueueCounter, kCounterKinds };

enum AttemptEvent : uint8 {
  kStarted,
  kCompleted,
  kFailed,
  kRetried,  // ended, and the job runs again
  kQuarantined,
  kCancelled,
  kReturned,  // released or snoozed
  kAttemptEvents
};

constexpr int64 kPeriodUs = 10000000;
constexpr int kPeriods = 12;

struct PeriodCounts {
  int64 period;  // number of the period
  uint32 events[kAttemptEvents];
  uint32 waits[kBuckets];  // of attempts that started
  uint32 runs[kBuckets];   // of attempts that ended
};

// Names the counter of a task or queue. The counter may belong to another name by the time that the
// transaction ends; the key tells.
struct CounterId {
  uint64 key;  // hash of the database and the name; 0: the counter of all further names
  uint16 place;
  CounterKind kind;
};

// Shared memory; only in a server that preloads the library.
Size counters_size();
void create_counters();

// Frees the counters of an entry that another database takes over.
void reset_counters(int database);

// True when this server has counters.
bool has_counters();

// Finds the counter of a name, or takes one.
CounterId counter_of(CounterKind kind, const text* name);

// Counts equal events in a period. Cannot fail.
void count_events(const CounterId& id, AttemptEvent event, int bucket, int64 period, uint32 times);
int64 present_period();

// Calls use(kind, name, length, counts) with each period of this database that has counts. The name
// of the counter of all further names is empty.
using UseCounts = void (*)(void* context, CounterKind kind, const char* name, int length,
                           const PeriodCounts& counts);
void read_counters(void* context, UseCounts use);

// The last minute that sweeps have added to the table, counted from 2000; 0: none yet. The sweep
// that sets the minute holds the advisory lock LockKind::kCounters.
int64 added_minute();
void set_added_minute(int64 minute);

}  // namespace pulse
