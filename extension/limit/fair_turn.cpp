#include "limit/fair_turn.hpp"

#include "access/catalog.hpp"
#include "job/scan.hpp"
#include "limit/queue_lock.hpp"
#include "limit/queue_marks.hpp"
#include "server/advisory_lock.hpp"
#include "server/settings.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// How many queues one call promotes in turns at most.
constexpr int kMaxCandidates = 256;

struct RingWalk {
  FairTurn turn;
  JobScan parked;
  TurnBudget* budget;
  PromoteQueue promote;
  int candidates_left;
  uint32 last_pass;  // the walk ends at this pass, unless a queue starts a job before
};

bool goes_on(const RingWalk& walk) {
  return walk.budget->places_left > 0 && walk.candidates_left > 0 && !walk.turn.is_blocked &&
         !walk.turn.is_dissolved && !walk.turn.is_behind;
}

// Promotes the queue in its turn, which allows `left` more jobs.
void give_turn(RingWalk* walk, Datum name, int left) {
  FairRing* ring = walk->turn.ring;
  int places_left = walk->budget->places_left;
  walk->turn.left = left;
  walk->turn.has_more = false;
  walk->candidates_left--;
  walk->promote(name, ring->bucket, walk->budget);
  if (walk->budget->places_left < places_left) walk->last_pass = ring->pass + kPasses + 1;
  if (walk->turn.is_behind) return;  // the queue keeps this turn
  text_to_cstring_buffer(DatumGetTextPP(name), ring->name, sizeof(ring->name));
  ring->left = walk->turn.has_more ? Max(walk->turn.left, 0) : 0;
}

// Gives turns to the queues of the queue bucket that the ring has entered. True when every queue of
// the bucket has had its turn.
bool visit_bucket(RingWalk* walk, bool* is_left) {
  FairRing* ring = walk->turn.ring;
  Datum name = CStringGetTextDatum(ring->name);
  int bucket = ring->bucket;
  *is_left = ring->name[0] != '\0';  // an earlier walk has visited the queues before `name`
  if (ring->left > 0) {
    give_turn(walk, name, ring->left);
    *is_left |= walk->turn.has_more;
  }
  while (goes_on(*walk)) {
    CHECK_FOR_INTERRUPTS();
    if (!next_queue(&walk->parked.rows, &bucket, &name, true)) return true;
    give_turn(walk, name, kTurnBegins);
    *is_left |= walk->turn.has_more;
  }
  return false;
}

void visit_next_bucket(RingWalk* walk) {
  FairRing* ring = walk->turn.ring;
  int bucket = ring->bucket;
  bool is_left;
  bool is_over = visit_bucket(walk, &is_left);
  if (is_left || !is_over) keep_in_ring(ring, bucket);
  if (is_over) leave_bucket(ring);
}

// Locks the ring, with pauses. The walk of another claim ends soon, because the walk waits for no
// lock. So a pause is worth its time: a claim that leaves at once finds no job, and comes back at
// once.
bool lock_ring(uint64 key, TurnBudget* budget) {
  while (!try_advisory_lock(LockKind::kRing, key, ExclusiveLock)) {
    budget->busy |= budget->pauses <= 0;
    if (budget->pauses-- <= 0) return false;
    pause_briefly();
  }
  return true;
}

void walk_ring(RingWalk* walk) {
  FairRing* ring = walk->turn.ring;
  while (goes_on(*walk) && static_cast<int32>(walk->last_pass - ring->pass) > 0) {
    if (enter_bucket(ring)) {
      visit_next_bucket(walk);
    } else {
      begin_pass(ring);
      if (!has_waits(ring)) return;
    }
  }
}

// Leaves the ring to the next walk: dissolves or blocks the ring, or clears its announcement.
void end_turns(int number, const RingWalk& walk) {
  FairRing* ring = walk.turn.ring;
  if (walk.turn.is_dissolved) {
    mark_queue(this_database(), ring->bucket);
    dissolve_ring(ring);
  } else if (walk.turn.is_blocked) {
    set_dry_timer(walk.turn.full);
    return block_ring(number, walk.turn.full);
  }
  if (has_waits(ring))
    walk.budget->more |= walk.candidates_left <= 0;
  else
    clear_ring_announcement(number);
}

// Begins a check of open jobs, if the check before began a sweep_interval ago. Returns the next
// transaction id as of the check before; invalid: too early, or no check before.
TransactionId begin_check_of_open_jobs() {
  FairRings* rings = rings_here();
  if (!rings) return InvalidTransactionId;
  TimestampTz now = GetCurrentTimestamp();
  int64 interval_us = int64{settings.sweep_interval_ms} * 1000;
  TransactionId next = XidFromFullTransactionId(ReadNextFullTransactionId());
  TransactionId before = InvalidTransactionId;
  lock_spin(&rings->lock);
  if (now - rings->checked_at >= interval_us || rings->checked_at > now) {
    if (rings->checked_at > 0) before = rings->checked_before;
    rings->checked_at = now;
    rings->checked_before = next;
  }
  unlock_spin(&rings->lock);
  return before;
}

}  // namespace

bool awaits_turn(const Levels& levels, int bucket, FairTurn* turn) {
  const Level* fair = levels.fair >= 0 ? &levels.level[levels.fair] : nullptr;
  if (!turn) return fair && join_ring(levels, bucket);
  // The queue may only share the bucket with a queue of the ring, or the queue's level may be fair
  // no longer.
  if (!fair || queue_identity(fair->name) != turn->ring->level) {
    for (int i = 0; i < levels.count; i++)
      turn->is_dissolved |= levels.level[i].hash == turn->ring->lock_key;
    turn->left = 0;
    return true;
  }
  if (turn->left == kTurnBegins) turn->left = begin_turn(*turn, levels.weight, bucket);
  turn->has_more = turn->left == 0;
  return turn->left == 0;
}

bool blocks_turn(const Levels& levels, TurnBudget* budget) {
  FairTurn* turn = budget->turn;
  if (!turn || levels.blocker > levels.fair) return false;
  turn->has_more = turn->is_blocked = true;
  turn->full = levels.level[levels.blocker];
  return true;
}

bool keeps_turn(const Levels& levels, const FairTurn& turn) {
  bool is_member = false;
  for (int i = 0; i < levels.count; i++) {
    uint64 key = levels.level[i].hash;
    if (is_member && is_being_set(key)) return false;
    is_member |= key == turn.ring->lock_key;
  }
  return is_member;
}

void take_turns(int number, TurnBudget* budget, PromoteQueue promote) {
  if (!is_ring_announced(number)) return;
  FairRing* ring = fair_ring(number);
  if (!ring) return clear_ring_announcement(number);
  uint64 key = ring->lock_key;
  if (!lock_ring(key, budget)) return;
  // The ring was idle, and went to another level while this claim paused.
  if (ring->lock_key != key) return release_advisory_lock(LockKind::kRing, key, ExclusiveLock);
  // The walk finds out anew: an undone claim that had filled the level has announced the ring
  // again.
  pg_atomic_write_u32(&ring->blocked_group, 0);
  RingWalk walk = {};
  walk.turn.ring = ring;
  walk.budget = budget;
  walk.promote = promote;
  walk.candidates_left = kMaxCandidates;
  walk.last_pass = ring->pass + kPasses + 1;
  budget->turn = &walk.turn;
  open_job_scan(&walk.parked, &Catalog::job_parked_idx, 2);
  walk_ring(&walk);
  close_job_scan(&walk.parked);
  budget->turn = nullptr;
  end_turns(number, walk);
  release_advisory_lock(LockKind::kRing, key, ExclusiveLock);
}

}  // namespace pulse

// pulse_internal.is_turn_awaited(level): whether queues of a fair level wait for a place of the
// level.
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

// pulse_internal.opened_before(): the transaction id before which jobs were opened a sweep_interval
// ago or earlier. NULL: not known, or asked too early.
PULSE_FUNCTION(pulse_opened_before) {
  TransactionId before = pulse::begin_check_of_open_jobs();
  if (!TransactionIdIsValid(before)) PG_RETURN_NULL();
  PG_RETURN_TRANSACTIONID(before);
}
