#include "limit/fair_turn.hpp"

#include "access/catalog.hpp"
#include "job/scan.hpp"
#include "limit/queue_lock.hpp"
#include "limit/queue_marks.hpp"
#include "server/advisory_lock.hpp"
#include "server/settings.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/promotion_marks.hpp"

namespace pulse {
namespace {

// How many queues one call promotes in turns at most.
constexpr int kMaxCandidates = 256;

bool goes_on(const RingSource& walk) {
  return walk.candidates_left > 0 && !walk.turn.is_blocked && !walk.turn.is_dissolved &&
         !walk.turn.is_behind;
}

// Enters the next queue bucket in which a queue waits for a turn. False: the walk has come around
// the ring, and no queue has started a job.
bool enter_next_bucket(RingSource* walk) {
  FairRing* ring = walk->turn.ring;
  while (static_cast<int32>(walk->last_pass - ring->pass) > 0) {
    if (!enter_bucket(ring)) {
      begin_pass(ring);
      if (!has_waits(ring)) return false;
      continue;
    }
    walk->is_in_bucket = true;
    walk->is_resumed = ring->left > 0;
    walk->is_left = ring->name[0] != '\0';  // an earlier walk has visited the queues before `name`
    walk->bucket = ring->bucket;
    walk->name = CStringGetTextDatum(ring->name);
    return true;
  }
  return false;
}

// Begins the turn of the next queue of the entered bucket. False: every queue has had its turn.
bool begin_next_turn(RingSource* walk) {
  FairTurn* turn = &walk->turn;
  turn->left = walk->is_resumed ? turn->ring->left : kTurnBegins;
  turn->has_more = false;
  if (!walk->is_resumed && !next_queue(&walk->parked.rows, &walk->bucket, &walk->name, true))
    return false;
  walk->is_resumed = false;
  walk->candidates_left--;
  return true;
}

bool next_turn(QueueSource* source, Candidate* candidate) {
  auto* walk = static_cast<RingSource*>(source);
  FairRing* ring = walk->turn.ring;
  while (goes_on(*walk)) {
    if (!walk->is_in_bucket && !enter_next_bucket(walk)) return false;
    if (begin_next_turn(walk)) {
      *candidate = {walk->name, ring->bucket};
      return true;
    }
    if (walk->is_left) keep_in_ring(ring, ring->bucket);
    leave_bucket(ring);
    walk->is_in_bucket = false;
  }
  return false;
}

void answer_turn(QueueSource* source, const Candidate& candidate, const Outcome& outcome) {
  auto* walk = static_cast<RingSource*>(source);
  FairTurn* turn = &walk->turn;
  turn->has_more |= outcome.has_more || outcome.is_busy;
  walk->is_left |= turn->has_more;
  if (outcome.starts > 0) walk->last_pass = turn->ring->pass + kPasses + 1;
  if (turn->is_behind) return;  // the queue keeps this turn
  text_to_cstring_buffer(DatumGetTextPP(candidate.name), turn->ring->name,
                         sizeof(turn->ring->name));
  turn->ring->left = turn->has_more ? Max(turn->left, 0) : 0;
}

// Locks the ring, with pauses. The walk of another claim ends soon, because it waits for no lock.
// So a pause is worth its time: a claim that leaves at once finds no job, and comes back at once.
bool lock_ring(uint64 key, int* pauses, bool* is_busy) {
  while (!try_advisory_lock(LockKind::kRing, key, ExclusiveLock)) {
    *is_busy |= *pauses <= 0;
    if ((*pauses)-- <= 0) return false;
    pause_briefly();
  }
  return true;
}

// Dissolves or blocks the ring, or clears its announcement. True: queues wait that the walk had no
// time for, or that came meanwhile.
bool leave_ring(const RingSource& walk) {
  FairRing* ring = walk.turn.ring;
  if (walk.turn.is_dissolved) {
    set_promotion_mark(this_database(), ring->bucket);
    dissolve_ring(ring);
  } else if (walk.turn.is_blocked) {
    set_dry_timer(walk.turn.full);
    return block_ring(walk.number, walk.turn.full);
  }
  if (has_waits(ring)) return walk.candidates_left <= 0;
  return clear_ring_announcement(walk.number);
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
  // The queue may only share the bucket with a queue of the ring, or its level may be fair no
  // longer.
  if (!fair || fair->identity != turn->ring->level) {
    for (int i = 0; i < levels.count; i++)
      turn->is_dissolved |= levels.level[i].identity == turn->ring->level;
    turn->left = 0;
    return true;
  }
  if (turn->left == kTurnBegins) turn->left = begin_turn(*turn, levels.weight, bucket);
  turn->has_more = turn->left == 0;
  return turn->left == 0;
}

bool blocks_turn(const Levels& levels, FairTurn* turn) {
  if (!turn || levels.blocker > levels.fair) return false;
  turn->has_more = turn->is_blocked = true;
  turn->full = levels.level[levels.blocker];
  return true;
}

bool keeps_turn(const Levels& levels, const FairTurn& turn) {
  bool is_member = false;
  for (int i = 0; i < levels.count; i++) {
    if (is_member && is_being_set(levels.level[i].hash)) return false;
    is_member |= levels.level[i].identity == turn.ring->level;
  }
  return is_member;
}

bool begin_turns(RingSource* walk, int number, int* pauses, bool* is_busy) {
  if (!is_ring_announced(number)) return false;
  FairRing* ring = fair_ring(number);
  if (!ring) {
    (void)clear_ring_announcement(number);
    return false;
  }
  uint64 key = ring->level;
  if (!lock_ring(key, pauses, is_busy)) return false;
  // While this claim paused, the ring went to another level, or another walk blocked the ring.
  if (ring->level != key || !is_ring_announced(number)) {
    release_advisory_lock(LockKind::kRing, key, ExclusiveLock);
    return false;
  }
  // The walk finds out anew: an undone claim that had filled the level has announced the ring
  // again.
  pg_atomic_write_u32(&ring->blocked_group, 0);
  *walk = {};
  walk->next = next_turn;
  walk->answer = answer_turn;
  walk->turn.ring = ring;
  walk->number = number;
  walk->lock_key = key;
  walk->candidates_left = kMaxCandidates;
  walk->last_pass = ring->pass + kPasses + 1;
  open_job_scan(&walk->parked, &Catalog::job_parked_idx, 2);
  return true;
}

bool end_turns(RingSource* walk) {
  if (walk->is_in_bucket) keep_in_ring(walk->turn.ring, walk->turn.ring->bucket);
  close_job_scan(&walk->parked);
  bool is_cut = leave_ring(*walk);
  release_advisory_lock(LockKind::kRing, walk->lock_key, ExclusiveLock);
  return is_cut;
}

}  // namespace pulse

// pulse_internal.is_turn_awaited(level): whether queues of a fair level wait for a place of the
// level.
PULSE_FUNCTION(pulse_is_turn_awaited) {
  pulse::FairRing* ring = pulse::ring_of(pulse::queue_identity(PG_GETARG_DATUM(0)));
  PG_RETURN_BOOL(ring && pg_atomic_read_u32(&ring->blocked_group) != 0 && pulse::has_waits(ring));
}

// pulse_internal.opened_before(): the transaction id before which jobs were opened a sweep_interval
// ago or earlier. NULL: not known, or asked too early.
PULSE_FUNCTION(pulse_opened_before) {
  TransactionId before = pulse::begin_check_of_open_jobs();
  if (!TransactionIdIsValid(before)) PG_RETURN_NULL();
  PG_RETURN_TRANSACTIONID(before);
}
