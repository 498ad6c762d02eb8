#include "queue/fair_ring.hpp"

#include "queue/remembered_queue.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// A ring without bits may be between two of them for as long as a promotion takes.
constexpr int64 kIdleUs = 60000000;

struct FairRings {
  slock_t lock;  // held to join
  // The last look at open jobs, and the next transaction of then.
  TimestampTz looked_at;
  TransactionId looked_before;
  FairRing ring[kFairRings];
};

FairRings* all_rings = nullptr;

FairRings* rings_here() {
  DatabaseState* database = all_rings ? this_database() : nullptr;
  return database ? &all_rings[place_of_database(database)] : nullptr;
}

// The ring of the level, or one that no level uses.
FairRing* ring_for(FairRings* rings, uint64 level, TimestampTz now) {
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

// The first slot from the present one on in which a queue has a turn in this pass; -1: none.
int next_wait(FairRing* ring) {
  for (int at = ring->slot; at < kQueueSlots; at = (at / 64 + 1) * 64) {
    uint64 waits = pg_atomic_read_u64(&ring->waits[at / 64]);
    if (!is_first_pass(ring)) waits &= ring->heavy[at / 64];
    waits >>= at % 64;
    if (waits) return at + __builtin_ctzll(waits);
  }
  return -1;
}

void begin_slot(FairRing* ring, int slot) {
  ring->slot = slot;
  ring->left = 0;
  ring->name[0] = '\0';
}

// How many of its weight a member starts in this pass.
int share_of_pass(const FairRing* ring, int weight) {
  int pass = static_cast<int>(ring->pass % kPasses);
  auto until = [weight](int passes) { return (weight * passes + kPasses - 1) / kPasses; };
  return until(pass + 1) - until(pass);
}

DeepMember* find_deep(FairRing* ring, uint64 hash, bool is_deep) {
  DeepMember* oldest = ring->deep;
  for (DeepMember& deep : ring->deep) {
    if (deep.hash == hash) return &deep;
    if (deep.pass < oldest->pass) oldest = &deep;
  }
  if (!is_deep) return nullptr;
  *oldest = {hash, 0, 0, 0, 0, 0};
  return oldest;
}

int turn_of_deep(DeepMember* deep, uint32 pass, int share) {
  if (deep->pass != pass || deep->turns == 0)
    *deep = {deep->hash, pass, deep->turns + 1, 0, 0, deep->seen};
  int position = deep->seen++;
  int queues = Max(deep->seen_before, 1);
  int left = share - deep->served;
  bool is_chosen = (static_cast<uint32>(position) + deep->turns) % static_cast<uint32>(queues) <
                       static_cast<uint32>(share) ||
                   queues - position <= left;
  return is_chosen ? Max(left, 0) : 0;
}

void announce_unless_blocked(FairRings* rings, FairRing* ring) {
  if (pg_atomic_read_u32(&ring->blocked_group) == 0)
    announce_ring(static_cast<int>(ring - rings->ring));
}

}  // namespace

Size fair_rings_size(int databases) { return mul_size(databases, sizeof(FairRings)); }

void create_fair_rings(int databases) {
  all_rings = static_cast<FairRings*>(
      shared_area("pg_pulse fair rings", fair_rings_size(databases), [](void* area, Size size) {
        memset(area, 0, size);
        auto* all = static_cast<FairRings*>(area);
        for (Size i = 0; i < size / sizeof(FairRings); i++) {
          SpinLockInit(&all[i].lock);
          for (FairRing& ring : all[i].ring) {
            for (pg_atomic_uint64& word : ring.waits) pg_atomic_init_u64(&word, 0);
            pg_atomic_init_u32(&ring.blocked_group, 0);
            pg_atomic_init_u64(&ring.blocked_frees, 0);
          }
        }
      }));
}

void reset_fair_rings(int database) {
  for (int i = 0; all_rings && i < kFairRings; i++) {
    FairRing* ring = &all_rings[database].ring[i];
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
  DatabaseState* database = all_rings ? this_database() : nullptr;
  return database && (pg_atomic_read_u64(&database->freed_levels) & announcement_of(number));
}

void hush_ring(int number) {
  pg_atomic_fetch_and_u64(&this_database()->freed_levels, ~announcement_of(number));
  // A queue joins first and announces its ring then.
  FairRing* ring = fair_ring(number);
  if (ring && has_waits(ring)) announce_ring(number);
}

bool join_ring(const Level& level, int slot) {
  FairRings* rings = rings_here();
  if (!rings) return false;
  uint64 identity = queue_identity(level.name);
  TimestampTz now = GetCurrentTimestamp();
  SpinLockAcquire(&rings->lock);
  FairRing* ring = ring_for(rings, identity, now);
  if (ring && ring->level != identity) {
    ring->level = identity;
    ring->lock_key = level.hash;
    ring->pass = 0;
    begin_slot(ring, 0);
    pg_atomic_write_u32(&ring->blocked_group, 0);
    memset(ring->deep, 0, sizeof(ring->deep));
  }
  if (ring) {
    ring->used_at = now;
    keep_in_ring(ring, slot);
  }
  SpinLockRelease(&rings->lock);
  if (ring) announce_unless_blocked(rings, ring);
  return ring;
}

bool join_known_ring(const Levels& levels, int slot) {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < levels.count; i++) {
    uint64 identity = queue_identity(levels.level[i].name);
    FairRing* joined = nullptr;
    SpinLockAcquire(&rings->lock);
    for (FairRing& ring : rings->ring)
      if (ring.level == identity) joined = &ring;
    if (joined) keep_in_ring(joined, slot);
    SpinLockRelease(&rings->lock);
    if (joined) announce_unless_blocked(rings, joined);
    if (joined) return pg_atomic_read_u32(&joined->blocked_group) == 0;
  }
  return false;
}

bool is_ring_blocked(const Level& level) {
  uint64 identity = queue_identity(level.name);
  for (int i = 0; i < kFairRings; i++) {
    FairRing* ring = fair_ring(i);
    if (ring && ring->level == identity) return pg_atomic_read_u32(&ring->blocked_group) != 0;
  }
  return false;
}

void dissolve_ring(FairRing* ring) {
  FairRings* rings = rings_here();
  SpinLockAcquire(&rings->lock);
  ring->level = 0;
  SpinLockRelease(&rings->lock);
  for (int i = 0; i < kQueueWords; i++)
    pg_atomic_fetch_or_u64(&this_database()->marks[i], pg_atomic_exchange_u64(&ring->waits[i], 0));
}

int begin_turn(FairTurn* turn, const Levels& levels) {
  FairRing* ring = turn->ring;
  int member = levels.fair + 1;
  int weight = member < levels.count ? levels.level[member].weight : 1;
  if (weight > 1) ring->heavy[ring->slot / 64] |= UINT64CONST(1) << (ring->slot % 64);
  int share = share_of_pass(ring, weight);
  turn->deep = member < levels.count
                   ? find_deep(ring, levels.level[member].hash, member < levels.count - 1)
                   : nullptr;
  if (!turn->deep) return share;
  int left = turn_of_deep(turn->deep, ring->pass, share);
  turn->deep->served += left;
  return left;
}

bool enter_slot(FairRing* ring) {
  int slot = next_wait(ring);
  for (int passes = 0; slot < 0 && passes < kPasses; passes++) {
    ring->pass++;
    begin_slot(ring, 0);
    slot = next_wait(ring);
  }
  if (slot < 0) return false;
  if (slot != ring->slot) begin_slot(ring, slot);
  uint64 mask = UINT64CONST(1) << (slot % 64);
  // Its queues say anew what they weigh.
  if (is_first_pass(ring) && ring->name[0] == '\0') ring->heavy[slot / 64] &= ~mask;
  ring->used_at = GetCurrentTimestamp();
  pg_atomic_fetch_and_u64(&ring->waits[slot / 64], ~mask);
  note_wait_taken(slot, announcement_of(static_cast<int>(ring - rings_here()->ring)));
  return true;
}

void keep_in_ring(FairRing* ring, int slot) {
  pg_atomic_fetch_or_u64(&ring->waits[slot / 64], UINT64CONST(1) << (slot % 64));
}

void leave_slot(FairRing* ring) {
  if (ring->slot == kQueueSlots - 1) ring->pass++;
  begin_slot(ring, (ring->slot + 1) % kQueueSlots);
}

bool has_waits(FairRing* ring) {
  for (pg_atomic_uint64& word : ring->waits)
    if (pg_atomic_read_u64(&word)) return true;
  return false;
}

void block_ring(int number, const Level& level) {
  FairRing* ring = fair_ring(number);
  // Before it counts as blocked: who finds a place then announces it.
  pg_atomic_fetch_and_u64(&this_database()->freed_levels, ~announcement_of(number));
  pg_atomic_write_u64(&ring->blocked_frees, level.frees);
  pg_atomic_write_u32(&ring->blocked_group, static_cast<uint32>(level_group(level.hash)) + 1);
}

bool any_ring_announced() {
  DatabaseState* database = all_rings ? this_database() : nullptr;
  return database && pg_atomic_read_u64(&database->freed_levels) >> kLevelGroups;
}

bool waits_in_ring(int slot) {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < kFairRings; i++) {
    if (is_ring_announced(i) &&
        (pg_atomic_read_u64(&rings->ring[i].waits[slot / 64]) >> (slot % 64)) & 1)
      return true;
  }
  return false;
}

void unblock_rings() {
  FairRings* rings = rings_here();
  for (int i = 0; rings && i < kFairRings; i++) {
    FairRing* ring = &rings->ring[i];
    uint32 group = pg_atomic_read_u32(&ring->blocked_group);
    if (!group) continue;
    LevelGroup* full = &this_database()->level_groups[group - 1];
    if (pg_atomic_read_u64(&full->frees) == pg_atomic_read_u64(&ring->blocked_frees)) continue;
    pg_atomic_write_u32(&ring->blocked_group, 0);
    announce_ring(i);
  }
}

TransactionId next_look_at_open_jobs() {
  FairRings* rings = rings_here();
  if (!rings) return InvalidTransactionId;
  TimestampTz now = GetCurrentTimestamp();
  int64 interval_us = int64{settings.sweep_interval_ms} * 1000;
  TransactionId next = XidFromFullTransactionId(ReadNextFullTransactionId());
  TransactionId before = InvalidTransactionId;
  SpinLockAcquire(&rings->lock);
  if (now - rings->looked_at >= interval_us || rings->looked_at > now) {
    if (rings->looked_at > 0) before = rings->looked_before;
    rings->looked_at = now;
    rings->looked_before = next;
  }
  SpinLockRelease(&rings->lock);
  return before;
}

}  // namespace pulse

// pulse_internal.is_turn_awaited(level): whether queues of a fair level wait for a place in it.
PULSE_FUNCTION(pulse_is_turn_awaited) {
  uint64 level = pulse::queue_identity(PG_GETARG_DATUM(0));
  bool waits = false;
  for (int i = 0; i < pulse::kFairRings; i++) {
    pulse::FairRing* ring = pulse::fair_ring(i);
    if (ring && ring->level == level)
      waits = pg_atomic_read_u32(&ring->blocked_group) != 0 && pulse::has_waits(ring);
  }
  PG_RETURN_BOOL(waits);
}

// pulse_internal.opened_before(): transactions before this one opened jobs a sweep_interval ago;
// NULL: not known, or asked for too early.
PULSE_FUNCTION(pulse_opened_before) {
  TransactionId before = pulse::next_look_at_open_jobs();
  if (!TransactionIdIsValid(before)) PG_RETURN_NULL();
  PG_RETURN_TRANSACTIONID(before);
}
