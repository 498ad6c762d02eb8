#include "queue/sources.hpp"

#include "access/catalog.hpp"
#include "parent/resolve.hpp"
#include "server/call_checks.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/promotion_marks.hpp"

namespace pulse {
namespace {

constexpr BucketNames kNoNames = {-1, 0, 0, 0, false};
constexpr WaitWalk kNoWalk = {-1, 0, 0};

// Which queue of a queue bucket had the last turn in this session, while others of the bucket
// waited.
struct LastTurn {
  int bucket;
  char name[4 * kMaxName + 1];  // a character has four bytes at most; empty: no turn to go on with
};
// Of the queue buckets with one remainder the latest has the entry.
constexpr int kLastTurns = 64;
LastTurn last_turns[kLastTurns];

void remember_turn(int bucket, Datum queue) {
  LastTurn& turn = last_turns[bucket % kLastTurns];
  const text* name = DatumGetTextPP(queue);
  size_t length = VARSIZE_ANY_EXHDR(name);
  if (length >= sizeof(turn.name)) return;
  memcpy(turn.name, VARDATA_ANY(name), length);
  turn.name[length] = '\0';
  turn.bucket = bucket;
}

BucketNames names_of_bucket(int bucket) {
  LastTurn& turn = last_turns[bucket % kLastTurns];
  Datum resumed = CStringGetTextDatum(bucket == turn.bucket ? turn.name : "");
  if (VARSIZE_ANY_EXHDR(DatumGetTextPP(resumed)) == 0) return {bucket, resumed, 0, 0, false};
  turn.name[0] = '\0';
  return {bucket, resumed, resumed, 0, false};
}

bool is_behind_resumed(const BucketNames& names) {
  return DatumGetBool(DirectFunctionCall2Coll(text_gt, C_COLLATION_OID, names.name, names.resumed));
}

// One scan serves all queue buckets: the names come from index entries, whatever rows the snapshot
// shows.
bool next_name(PromotionBudget* budget, BucketNames* names) {
  if (names->bucket < 0) return false;
  if (!budget->names.job) open_job_scan(&budget->names, &Catalog::job_parked_idx, 2);
  int at = names->bucket;
  bool found = next_queue(&budget->names.rows, &at, &names->name, true);
  if (!found && names->resumed != 0 && !names->is_again) {
    names->is_again = true;
    names->name = CStringGetTextDatum("");
    found = next_queue(&budget->names.rows, &at, &names->name, true);
  }
  if (found && !(names->is_again && is_behind_resumed(*names))) return true;
  if (names->resumed != 0 && names->started == 0) remember_turn(names->bucket, names->resumed);
  names->bucket = -1;
  return false;
}

// The queues of the bucket that the call has no places left for keep their queue mark. The next
// call of this session that comes to the bucket goes on with these queues.
void end_names(PromotionBudget* budget, BucketNames* names) {
  if (names->bucket < 0) return;
  BucketNames last = *names;
  if (!next_name(budget, names)) return;
  keep_queue_mark(budget, {names->name, names->bucket}, {0, 0, false, true, false, false, -1});
  if (!names->is_again) remember_turn(last.bucket, last.name);
}

// Takes one promotion mark at a time, so that the queue mark of an unchecked queue stays set.
bool next_mark(MarkSource* marks) {
  PromotionBudget& budget = *marks->budget;
  int bucket;
  if (marks->places == budget.places_left && budget.free_checks > 0) marks->marks_left++;
  if (marks->marks_left-- <= 0 || !may_promote(budget) || !take_promotion_mark(&bucket))
    return false;
  budget.free_checks--;
  bool is_queue = bucket < parent_mark(0);
  marks->places = is_queue && !budget.lets_join ? budget.places_left : -1;
  if (is_queue)
    marks->names = names_of_bucket(bucket);
  else
    budget.more |= resolve_waits(bucket - parent_mark(0));
  return true;
}

bool next_marked(QueueSource* source, Candidate* candidate) {
  auto* marks = static_cast<MarkSource*>(source);
  while (!next_name(marks->budget, &marks->names)) {
    CHECK_FOR_INTERRUPTS();
    if (!next_mark(marks)) return false;
  }
  *candidate = {marks->names.name, marks->names.bucket};
  return true;
}

void answer_mark(QueueSource* source, const Candidate& queue, const Outcome& outcome) {
  auto* marks = static_cast<MarkSource*>(source);
  if (outcome.starts > 0)
    marks->names.started = queue.name;
  else
    marks->budget->free_checks--;
  if (outcome.starts == 0 && outcome.has_more && marks->passed_over < 0)
    marks->passed_over = queue.bucket;
  keep_queue_mark(marks->budget, queue, outcome);
}

// Takes the next queue bucket of the group. False: the walk has ended.
bool next_waiting_bucket(FreedLevelSource* levels) {
  int group = levels->walk.group;
  if (levels->met_lock) {
    return_freed_level(group);
    return false;
  }
  if (levels->is_blocked && waits_for_one_level(group)) {
    begin_next_walk_at(group, levels->next_bucket);
    return false;
  }
  int bucket;
  if (!take_wait(&levels->walk, &bucket)) {
    begin_next_walk_at(group, levels->next_bucket);
    end_wait_walk(group);
    return false;
  }
  bool is_full = levels->budget->places_left <= 0;
  if (is_full || --levels->buckets_left < 0) {
    put_wait_back(levels->walk, bucket);
    return_freed_level(group);
    begin_next_walk_at(group, is_full ? levels->next_bucket : bucket);
    return false;
  }
  note_wait_taken(bucket);
  levels->met_lock = levels->is_blocked = false;
  levels->names = names_of_bucket(bucket);
  return true;
}

bool next_group(FreedLevelSource* levels) {
  levels->walk.group = -1;
  int group;
  if (levels->buckets_left <= 0 || levels->budget->places_left <= 0 || !take_freed_level(&group))
    return false;
  levels->walk = begin_wait_walk(group);
  levels->next_bucket = levels->walk.position;
  levels->met_lock = levels->is_blocked = false;
  return true;
}

bool next_freed(QueueSource* source, Candidate* candidate) {
  auto* levels = static_cast<FreedLevelSource*>(source);
  while (!next_name(levels->budget, &levels->names))
    if (!(levels->walk.group >= 0 && next_waiting_bucket(levels)) && !next_group(levels))
      return false;
  *candidate = {levels->names.name, levels->names.bucket};
  return true;
}

void answer_freed(QueueSource* source, const Candidate& queue, const Outcome& outcome) {
  auto* levels = static_cast<FreedLevelSource*>(source);
  bool is_blocked = outcome.blocking_group == levels->walk.group;
  BucketNames* names = &levels->names;
  if (outcome.starts > 0) {
    names->started = queue.name;
    levels->next_bucket = queue.bucket + 1;
  } else if (is_blocked && names->started != 0) {
    remember_turn(queue.bucket, names->started);
  }
  levels->met_lock |= outcome.met_lock;
  levels->is_blocked |= is_blocked;
  keep_queue_mark(levels->budget, queue, outcome);
}

}  // namespace

void keep_queue_mark(PromotionBudget* budget, const Candidate& queue, const Outcome& outcome) {
  budget->more |= outcome.has_more;
  if (!outcome.has_more && !outcome.is_busy) return;
  if (budget->lets_join && !outcome.is_busy)
    set_promotion_mark(this_database(), queue.bucket);  // this call may still have places left
  else
    return_promotion_mark(queue.bucket, !outcome.is_busy);
}

MarkSource begin_marks(PromotionBudget* budget, int max_marks) {
  return {{next_marked, answer_mark}, budget, kNoNames, max_marks, -1, -1};
}

void end_marks(MarkSource* marks) {
  end_names(marks->budget, &marks->names);
  if (marks->passed_over >= 0) search_marks_from(marks->passed_over);
}

FreedLevelSource begin_freed_levels(PromotionBudget* budget, int max_buckets) {
  return {{next_freed, answer_freed}, budget, kNoNames, max_buckets, kNoWalk, 0, false, false};
}

void end_freed_levels(FreedLevelSource* levels) {
  end_names(levels->budget, &levels->names);
  if (levels->walk.group >= 0) next_waiting_bucket(levels);
}

}  // namespace pulse
