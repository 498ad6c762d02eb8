#include "counters/counters.hpp"

#include "server/advisory_lock.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "shared/memory.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace pulse {
namespace {

constexpr int kNames = 256;  // counters with a name, per kind, of all databases
constexpr int kPlaces = kNames + kPreloadedDatabases;  // then one per database for further names
constexpr int kMaxNameBytes = kMaxName * 4;

// Guard of the other fields: `lock`.
struct Counter {
  slock_t lock;
  uint64 key;  // 0: free, or of further names
  int database;
  int length;
  char name[kMaxNameBytes];
  PeriodCounts counts[kPeriods];
};

// The keys stand by themselves, so that a search touches few cache lines. Guard of all fields:
// atomic, except in Counter.
struct Kind {
  slock_t lock;                         // held to take a counter
  pg_atomic_uint64 full_in;             // the period in which the last search for a free one failed
  pg_atomic_uint64 keys[kNames];        // 0: free
  pg_atomic_uint64 counted_in[kNames];  // the period of the last count
  Counter counters[kPlaces];
};

struct Counters {
  pg_atomic_uint64 added_minute[kPreloadedDatabases];  // guard: atomic; writes: advisory kCounters
  Kind kinds[kCounterKinds];
};

Counters* all = nullptr;

bool is_unused(const Kind* kind, int place, int64 period) {
  auto counted = static_cast<int64>(
      pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&kind->counted_in[place])));
  // A count far ahead comes from a clock that was set back since.
  return counted > period + kPeriods || counted < period - kPeriods;
}

CounterId further_names(CounterKind kind) {
  return {0, static_cast<uint16>(kNames + entry_number(this_database())), kind};
}

void give(Counter* counter, uint64 key, int database, const text* name) {
  lock_spin(&counter->lock);
  counter->key = key;
  counter->database = database;
  counter->length = Min(static_cast<int>(VARSIZE_ANY_EXHDR(name)), kMaxNameBytes);
  memcpy(counter->name, VARDATA_ANY(name), counter->length);
  for (PeriodCounts& counts : counter->counts) counts.period = 0;
  unlock_spin(&counter->lock);
}

int find_key(Kind* kind, uint64 key) {
  for (uint64 i = 0; i < kNames; i++) {
    uint64 at = (key + i) % kNames;
    if (pg_atomic_read_u64(&kind->keys[at]) == key) return static_cast<int>(at);
  }
  return -1;
}

// The first free place from the place of the key on; -1: none is free. Requires Kind::lock.
int free_place(const Kind* kind, uint64 key, int64 period) {
  Assert(holds_spin(&kind->lock));
  for (uint64 i = 0; i < kNames; i++) {
    auto at = static_cast<int>((key + i) % kNames);
    auto taken = pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&kind->keys[at]));
    if (taken == 0 || is_unused(kind, at, period)) return at;
  }
  return -1;
}

// Takes a place for the name, under Kind::lock, and then gives it the place's counter. A commit of
// another session that counts in between counts the name with further names.
int take_place(Kind* kind, uint64 key, const text* name) {
  int64 period = present_period();
  if (pg_atomic_read_u64(&kind->full_in) == static_cast<uint64>(period)) return -1;
  int database = entry_number(this_database());
  lock_spin(&kind->lock);
  int known = find_key(kind, key);
  int place = known >= 0 ? known : free_place(kind, key, period);
  if (known < 0 && place >= 0) {
    pg_atomic_write_u64(&kind->counted_in[place], static_cast<uint64>(period));
    pg_atomic_write_u64(&kind->keys[place], key);
  }
  unlock_spin(&kind->lock);
  if (place < 0) pg_atomic_write_u64(&kind->full_in, static_cast<uint64>(period));
  if (known < 0 && place >= 0) give(&kind->counters[place], key, database, name);
  return place;
}

// The counts of the period, which replace the oldest counts. Requires Counter::lock.
PeriodCounts* counts_in(Counter* counter, int64 period) {
  Assert(holds_spin(&counter->lock));
  PeriodCounts* counts = &counter->counts[static_cast<uint64>(period) % kPeriods];
  if (counts->period != period) *counts = {};
  counts->period = period;
  return counts;
}

// False when another name has the counter.
bool try_count(Counter* counter, uint64 key, AttemptEvent event, int bucket, int64 period,
               uint32 times) {
  lock_spin(&counter->lock);
  bool is_same = counter->key == key;
  if (is_same) {
    PeriodCounts* counts = counts_in(counter, period);
    counts->events[event] += times;
    (event == kStarted ? counts->waits : counts->runs)[bucket] += times;
  }
  unlock_spin(&counter->lock);
  return is_same;
}

void note_use(pg_atomic_uint64* counted_in, int64 period) {
  if (pg_atomic_read_u64(counted_in) != static_cast<uint64>(period))
    pg_atomic_write_u64(counted_in, static_cast<uint64>(period));
}

void free_counter(Kind* kind, int place, int database) {
  Counter* counter = &kind->counters[place];
  lock_spin(&counter->lock);
  if (counter->database == database) {
    if (place < kNames) pg_atomic_write_u64(&kind->keys[place], 0);
    counter->key = 0;
    for (PeriodCounts& counts : counter->counts) counts.period = 0;
  }
  unlock_spin(&counter->lock);
}

}  // namespace

Size counters_size() { return sizeof(Counters); }

void create_counters() {
  all = static_cast<Counters*>(
      shared_area("pg_pulse counters", sizeof(Counters), [](void* area, Size size) {
        memset(area, 0, size);
        auto* created = static_cast<Counters*>(area);
        for (pg_atomic_uint64& minute : created->added_minute) pg_atomic_init_u64(&minute, 0);
        for (Kind& kind : created->kinds) {
          SpinLockInit(&kind.lock);
          pg_atomic_init_u64(&kind.full_in, 0);
          for (pg_atomic_uint64& key : kind.keys) pg_atomic_init_u64(&key, 0);
          for (pg_atomic_uint64& period : kind.counted_in) pg_atomic_init_u64(&period, 0);
          for (int i = 0; i < kPlaces; i++) {
            SpinLockInit(&kind.counters[i].lock);
            kind.counters[i].database = i < kNames ? -1 : i - kNames;
          }
        }
      }));
}

void reset_counters(int database) {
  if (!all) return;
  for (Kind& kind : all->kinds)
    for (int place = 0; place < kPlaces; place++) free_counter(&kind, place, database);
  pg_atomic_write_u64(&all->added_minute[database], 0);
}

bool has_counters() { return all && this_database(); }

CounterId counter_of(CounterKind kind, const text* name) {
  uint64 key =
      DatumGetUInt64(hash_any_extended(reinterpret_cast<const unsigned char*>(VARDATA_ANY(name)),
                                       static_cast<int>(VARSIZE_ANY_EXHDR(name)), MyDatabaseId));
  if (key == 0) key = 1;
  int place = find_key(&all->kinds[kind], key);
  if (place < 0) place = take_place(&all->kinds[kind], key, name);
  return place < 0 ? further_names(kind) : CounterId{key, static_cast<uint16>(place), kind};
}

int64 present_period() { return wall_now() / kPeriodUs; }

void count_events(const CounterId& id, AttemptEvent event, int bucket, int64 period, uint32 times) {
  Kind* kind = &all->kinds[id.kind];
  if (try_count(&kind->counters[id.place], id.key, event, bucket, period, times)) {
    if (id.place < kNames) note_use(&kind->counted_in[id.place], period);
  } else if (DatabaseState* database = this_database_if_known()) {
    int place = kNames + entry_number(database);
    (void)try_count(&kind->counters[place], 0, event, bucket, period, times);
  }
}

void read_counters(void* context, UseCounts use) {
  int database = entry_number(this_database());
  auto* copy = static_cast<Counter*>(palloc(sizeof(Counter)));
  for (int kind = 0; kind < kCounterKinds; kind++)
    for (int place = 0; place < kPlaces; place++) {
      Counter* counter = &all->kinds[kind].counters[place];
      CHECK_FOR_INTERRUPTS();
      lock_spin(&counter->lock);
      bool is_ours = counter->database == database;
      if (is_ours) *copy = *counter;
      unlock_spin(&counter->lock);
      for (int i = 0; is_ours && i < kPeriods; i++)
        if (copy->counts[i].period != 0)
          use(context, static_cast<CounterKind>(kind), copy->name, copy->length, copy->counts[i]);
    }
  pfree(copy);
}

int64 added_minute() {
  return static_cast<int64>(pg_atomic_read_u64(&all->added_minute[entry_number(this_database())]));
}

void set_added_minute(int64 minute) {
  Assert(holds_advisory_lock(LockKind::kCounters, 0, ExclusiveLock));
  DatabaseState* database = this_database_if_known();
  if (database)
    pg_atomic_write_u64(&all->added_minute[entry_number(database)], static_cast<uint64>(minute));
}

}  // namespace pulse
