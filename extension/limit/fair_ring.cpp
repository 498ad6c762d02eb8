#include "limit/fair_ring.hpp"

#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "shared/database_area.hpp"
#include "shared/queue_name.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// A walk clears a bit for as long as one promotion takes, so a ring in use may have no bit for a
// while.
constexpr int64 kIdleUs = 60000000;

DatabaseArea<FairRings> all_rings;

#ifdef USE_ASSERT_CHECKING

// Whether this transaction walks the ring.
bool is_walking(const FairRing* ring) {
  return holds_advisory_lock(LockKind::kRing, ring->level, ExclusiveLock);
}

#endif

// The ring of the level, or an idle ring; null: all rings are in use. Requires FairRings::lock.
FairRing* ring_for(FairRings* rings, uint64 level, TimestampTz now) {
  Assert(holds_spin(&rings->lock));
  FairRing* unused = nullptr;
  for (FairRing& ring : rings->ring) {
    if (ring.level == level) return &ring;
    bool is_idle = ring.level == 0 || now - ring.used_at > kIdleUs || ring.used_at > now;
    if (!unused && is_idle && !has_waits(&ring)) unused = &ring;
  }
  return unused;
}

uint64 announcement_of(int number) { return UINT64CONST(1) << (kLevelGroups + number); }

bool is_first_pass(const FairRing* ring) { return ring->pass % kPasses == 0; }

// The first queue bucket, from the present bucket on, in which a queue has a turn in this pass; -1:
// none.
int next_wait(FairRing* ring) {
  for (int at = ring->bucket; at < kQueueBuckets; at = (at / 64 + 1) * 64) {
    uint64 waits = pg_atomic_read_u64(&ring->waits[at / 64]);
    if (!is_first_pass(ring)) waits &= ring->heavy[at / 64];
    waits >>= at % 64;
    if (waits) return at + __builtin_ctzll(waits);
  }
  return -1;
}

void begin_bucket(FairRing* ring, int bucket) {
  ring->bucket = bucket;
  ring->left = 0;
  ring->name[0] = '\0';
}

// How many jobs of its weight a queue starts in this pass.
int share_of_pass(const FairRing* ring, int weight) {
  int pass = static_cast<int>(ring->pass % kPasses);
  auto until = [weight](int passes) { return (weight * passes + kPasses - 1) / kPasses; };
  return until(pass + 1) - until(pass);
}

void announce_unless_blocked(FairRings* rings, FairRing* ring) {
  if (pg_atomic_read_u32(&ring->blocked_group) == 0)
    announce_ring(static_cast<int>(ring - rings->ring));
}

// Announces the ring if its full level has counted a freed place since the ring was blocked.
bool unblock_ring(FairRing* ring, int number) {
  uint32 group = pg_atomic_read_u32(&ring->blocked_group);
  if (!group) return false;
  LevelGroup* full = &this_database()->level_groups[group - 1];
  if (pg_atomic_read_u64(&full->frees) == pg_atomic_read_u64(&ring->blocked_frees)) return false;
  pg_atomic_write_u32(&ring->blocked_group, 0);
  announce_ring(number);
  return true;
}

}  // namespace

FairRings* rings_here() { return all_rings.here(); }

Size fair_rings_size() { return all_rings.kSize; }

void create_fair_rings() { all_rings.create("pg_pulse fair rings"); }

void FairRings::init() {
  SpinLockInit(&lock);
  for (FairRing& of_level : ring) {
    for (pg_atomic_uint64& word : of_level.waits) pg_atomic_init_u64(&word, 0);
    pg_atomic_init_u32(&of_level.blocked_group, 0);
    pg_atomic_init_u64(&of_level.blocked_frees, 0);
  }
}

void reset_fair_rings(int database) {
  FairRings* rings = all_rings.of_database(database);
  for (int i = 0; rings && i < kFairRings; i++) {
    FairRing* ring = &rings->ring[i];
    ring->level = 0;
    pg_atomic_write_u32(&ring->blocked_group, 0);
    for (pg_atomic_uint64& word : ring->waits) pg_atomic_write_u64(&word, 0);
  }
}

FairRing* fair_ring(int number) {
  FairRings* rings = rings_here();
  return rings && rings->ring[number].level ? &rings->ring[number] : nullptr;
}

void announce_ring(int number) {
  pg_atomic_fetch_or_u64(&this_database()->freed_levels, announcement_of(number));
}

bool is_ring_announced(int number) {
  return rings_here() &&
         (pg_atomic_read_u64(&this_database()->freed_levels) & announcement_of(number));
}

bool clear_ring_announcement(int number) {
  pg_atomic_fetch_and_u64(&this_database()->freed_levels, ~announcement_of(number));
  FairRing* ring = fair_ring(number);
  if (!ring || !has_waits(ring)) return false;  // a queue joins first, and then announces the ring
  announce_ring(number);
  return true;
}

bool join_ring(const Levels& levels, int bucket) {
  FairRings* rings = rings_here();
  if (!rings) return false;
  const Level& level = levels.level[levels.fair];
  TimestampTz now = GetCurrentTimestamp();
  lock_spin(&rings->lock);
  FairRing* ring = ring_for(rings, level.identity, now);
  if (ring && ring->level != level.identity) {
    ring->level = level.identity;
    ring->pass = 0;
    begin_bucket(ring, 0);
    pg_atomic_write_u32(&ring->blocked_group, 0);
  }
  if (ring) {
    ring->used_at = now;
    keep_in_ring(ring, bucket);
  }
  unlock_spin(&rings->lock);
  if (ring) announce_unless_blocked(rings, ring);
  return ring;
}

bool join_known_ring(const Levels& levels, int bucket) {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < levels.count; i++) {
    FairRing* joined = nullptr;
    lock_spin(&rings->lock);
    for (FairRing& ring : rings->ring)
      if (ring.level == levels.level[i].identity) joined = &ring;
    if (joined) keep_in_ring(joined, bucket);
    unlock_spin(&rings->lock);
    if (joined) announce_unless_blocked(rings, joined);
    if (joined) return pg_atomic_read_u32(&joined->blocked_group) == 0;
  }
  return false;
}

FairRing* ring_of(uint64 identity) {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < kFairRings; i++)
    if (rings->ring[i].level == identity) return &rings->ring[i];
  return nullptr;
}

bool is_ring_blocked(const Level& level) {
  FairRing* ring = ring_of(level.identity);
  return ring && pg_atomic_read_u32(&ring->blocked_group) != 0;
}

void dissolve_ring(FairRing* ring) {
  Assert(is_walking(ring));
  FairRings* rings = rings_here();
  lock_spin(&rings->lock);
  ring->level = 0;
  unlock_spin(&rings->lock);
  pg_atomic_uint64* marks = this_database()->promotion_marks;
  for (int i = 0; i < kQueueWords; i++)
    pg_atomic_fetch_or_u64(&marks[i], pg_atomic_exchange_u64(&ring->waits[i], 0));
}

int begin_turn(const FairTurn& turn, int weight, int bucket) {
  Assert(is_walking(turn.ring));
  if (weight > 1) turn.ring->heavy[bucket / 64] |= UINT64CONST(1) << (bucket % 64);
  return share_of_pass(turn.ring, weight);
}

void begin_pass(FairRing* ring) {
  Assert(is_walking(ring));
  ring->pass++;
  begin_bucket(ring, 0);
}

bool enter_bucket(FairRing* ring) {
  Assert(is_walking(ring));
  int bucket = next_wait(ring);
  if (bucket < 0) return false;
  if (bucket != ring->bucket) begin_bucket(ring, bucket);
  // The queues of the bucket report their weights again.
  if (is_first_pass(ring) && ring->name[0] == '\0')
    ring->heavy[bucket / 64] &= ~(UINT64CONST(1) << (bucket % 64));
  (void)take_bit(ring->waits, bucket);
  ring->used_at = GetCurrentTimestamp();
  note_wait_taken(bucket, announcement_of(static_cast<int>(ring - rings_here()->ring)));
  return true;
}

void keep_in_ring(FairRing* ring, int bucket) { set_bit(ring->waits, bucket); }

void leave_bucket(FairRing* ring) {
  Assert(is_walking(ring));
  if (ring->bucket == kQueueBuckets - 1) return begin_pass(ring);
  begin_bucket(ring, ring->bucket + 1);
}

bool has_waits(FairRing* ring) { return has_any_bit(ring->waits); }

bool block_ring(int number, const Level& level) {
  FairRing* ring = fair_ring(number);
  Assert(is_walking(ring));
  // The ring's bit is cleared before the ring counts as blocked, so a backend that then finds a
  // freed place announces the ring.
  pg_atomic_fetch_and_u64(&this_database()->freed_levels, ~announcement_of(number));
  pg_atomic_write_u64(&ring->blocked_frees, level.frees);
  pg_atomic_write_u32(&ring->blocked_group, static_cast<uint32>(level_group(level.hash)) + 1);
  // A commit that counts a place from here on is found by the claim that the commit wakes.
  pg_memory_barrier();
  return unblock_ring(ring, number);
}

bool any_ring_announced() {
  return rings_here() && pg_atomic_read_u64(&this_database()->freed_levels) >> kLevelGroups;
}

bool waits_in_ring(int bucket) {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < kFairRings; i++)
    if (is_ring_announced(i) && is_bit_set(rings->ring[i].waits, bucket)) return true;
  return false;
}

void unblock_rings() {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < kFairRings; i++) (void)unblock_ring(&rings->ring[i], i);
}

}  // namespace pulse
