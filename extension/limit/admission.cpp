#include "limit/admission.hpp"

#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

void renew_table(AdmissionContext* context) {
  if (context->table.relation)
    take_new_snapshot(&context->table);
  else
    open_job_table(&context->table);
}

// The promotion takes the locks before the snapshot, so the snapshot shows every promotion that
// committed before.
AdmissionStatus lock_and_read(Levels* levels, int bucket, AdmissionContext* context) {
  FairTurn* turn = context->turn;
  if (!try_lock_levels(levels)) return AdmissionStatus::kBusy;
  renew_table(context);
  read_levels(levels, context->table.snapshot);
  if (awaits_turn(*levels, bucket, turn)) {
    levels->only_swaps = !turn && is_ring_blocked(levels->level[levels->fair]);
    return levels->only_swaps ? AdmissionStatus::kAdmitted : AdmissionStatus::kAwaitsTurn;
  }
  if (!levels->is_limited || take_credits(levels)) return AdmissionStatus::kAdmitted;
  if (!try_lock_limited_levels(levels)) return AdmissionStatus::kBusy;
  renew_table(context);
  read_levels(levels, context->table.snapshot);
  return AdmissionStatus::kAdmitted;
}

void find_limits(Admission* admission, Relation job, Snapshot snapshot, LevelCounts* counts) {
  Levels* levels = &admission->levels;
  if (!levels->only_swaps) find_places_left(levels, job, snapshot, counts);
  for (int i = 0; i < levels->count; i++) admission->is_paused |= levels->level[i].paused;
  if (levels->paused_by_end) {
    admission->is_paused = true;
    levels->blocker = -1;  // the end of this pause sets the queue mark
  }
}

}  // namespace

Admission admit(const Candidate& queue, AdmissionContext* context) {
  Admission admission = {};
  admission.queue = queue;
  Levels* levels = &admission.levels;
  *levels = levels_of(queue.name);
  FairTurn* turn = context->turn;
  if (!turn && join_known_ring(*levels, queue.bucket)) return admission;
  admission.status = lock_and_read(levels, queue.bucket, context);
  if (admission.status != AdmissionStatus::kAdmitted) {
    unlock_levels(levels, &context->counts);
    if (turn && admission.status == AdmissionStatus::kBusy)
      turn->is_behind = keeps_turn(*levels, *turn);
    return admission;
  }
  Assert(holds_locks_of(*levels));
  find_limits(&admission, context->table.relation, context->table.snapshot, &context->counts);
  admission.starts_left = turn ? turn->left : PG_INT32_MAX;
  return admission;
}

Admission foresee_admission(const Candidate& queue, Relation job, Snapshot snapshot,
                            LevelCounts* counts, const FreedPlaces& freed) {
  Admission admission = {};
  admission.queue = queue;
  admission.levels = levels_of(queue.name, freed);
  read_levels(&admission.levels, snapshot);
  find_limits(&admission, job, snapshot, counts);
  return admission;
}

void report_opened(Admission* admission, Outcome* outcome, AdmissionContext* context) {
  Levels* levels = &admission->levels;
  FairTurn* turn = context->turn;
  if (levels->is_limited && !levels->only_swaps) count_opened(levels, outcome->places);
  bool is_blocked = outcome->lacks_places && !levels->only_swaps && levels->blocker >= 0;
  if (is_blocked && !blocks_turn(*levels, turn)) {
    wait_for_level(*levels, admission->queue.bucket);
    outcome->blocking_group = level_group(levels->level[levels->blocker].hash);
  }
  if (turn) turn->left -= outcome->starts;
  // A promotion that changes nothing keeps no lock, so that one transaction may check any number of
  // queues.
  if (outcome->starts == 0 && !levels->has_changed)
    unlock_levels(levels, &context->counts);
  else
    note_promoted(levels->level[levels->count - 1].hash);
}

void wait_where_blocked(const Admission& admission) {
  if (admission.levels.blocker >= 0) wait_for_level(admission.levels, admission.queue.bucket);
}

}  // namespace pulse
