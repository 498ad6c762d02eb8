// Where the jobs that can be claimed begin. A claim walks its index from the front, where entries
// of ended and claims in place lie: thousands after a busy second, millions while an old snapshot
// keeps vacuum from them. Shared memory remembers, per task and priority, a key below which no job
// is ready, and the next claim starts there.
//
// A mark is raised by a claim over what it walked, and lowered by every transaction that makes a
// job ready below it, after its commit is visible. A claim that raises a mark may have missed such
// a commit: so each bucket counts the lowerings and keeps the last keys, and a claim raises no
// further than those that came since before its snapshot.
//
// A claim moves the mark over the jobs that it is about to take before it locks any of them, if
// nobody was faster, and others go on behind them: so no two claims look at the same rows, and
// each takes its own in one piece. What it then cannot have it gives back; if it is undone, the
// mark is lowered as for any claim (claims_in_progress.hpp).
//
// What never told anybody (a prepared transaction, a row written by hand) is found because marks
// expire: one claim then looks at a part of what lies below the mark, and goes on at the mark; the
// next one to come after a while looks at the next part. However much an old snapshot keeps there,
// no claim takes long, and all of them together a fiftieth of the time.
#pragma once

#include "server/postgres.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {

constexpr int kMarksPerBit = 4;
constexpr int kRecentKeys = 64;

struct OrderKey {
  TimestampTz run_at;
  int64 id;
};

bool precedes(OrderKey a, OrderKey b);

struct LowWaterMark {
  uint64 task;  // 0: free
  int16 priority;
  OrderKey key;
  TimestampTz expires;
  bool is_checked;   // it had expired: one claim looks below it, the others go on with it
  OrderKey checked;  // how far those looks have come
};

// The marks of all tasks that share a bit.
struct MarkBucket {
  slock_t lock;
  uint64 generation;                // how often it was lowered
  TimestampTz recent[kRecentKeys];  // to what, at generation % kRecentKeys
  LowWaterMark mark[kMarksPerBit];
};

// One task of a claim.
struct MarkView {
  MarkBucket* bucket;  // NULL: nothing is remembered
  int bit;
  uint64 task;
  uint64 generation;  // before the claim's snapshot was taken
  TimestampTz own;    // the first job that this transaction itself made ready
};

// Memory for so many databases; only there where the server preloads this library.
Size low_water_marks_size(int databases);
void create_low_water_marks(int databases);

// A place was given to another database.
void reset_low_water_marks(int database);

// Of the database at this place; NULL where nothing is remembered.
MarkBucket* mark_bucket(int database, int bit);

// Lowers the marks of this database, each to the earliest run_at of its task bit. Never raises.
void lower_marks_to(const EarliestRunAt& earliest);

// Call it before the snapshot of the claim is taken.
uint64 mark_generation(MarkBucket* bucket);

// A name for this task of this job table.
uint64 mark_task(const char* identifier, int length);

// The priorities of which a mark is remembered, in order, at most kMarksPerBit; how many they are.
int marked_priorities(const MarkView& view, int16* priorities);

// Where to begin.
struct FoundMark {
  bool is_known;
  bool is_to_check;  // this claim is to look below it, for all, from `checked` on
  OrderKey key;
  OrderKey checked;
  TimestampTz expires;
};
FoundMark find_mark(const MarkView& view, int16 priority);

// Whether others have gone further since; then `found` has the mark as it is now.
bool mark_has_moved(const MarkView& view, int16 priority, FoundMark* found);

// Moves the mark from where the walk found or left it on to `to`, for this claim alone. Call it
// after note_passed(): whatever becomes of the claim, nothing between them may be lost.
enum class Advance {
  kDone,
  kBehind,  // somebody was faster: `mark` has where it is now
  kNo       // it was lowered, or is not remembered any more
};
Advance advance_mark(const MarkView& view, int16 priority, OrderKey to, FoundMark* mark);

// A job that a mark was moved over is left to others.
void return_to_mark(const MarkView& view, int16 priority, OrderKey key);

// No job is ready below `checked`, as far as the look that began then saw: somebody goes on there
// later. Returns when the mark expires.
TimestampTz note_checked(const MarkView& view, int16 priority, OrderKey checked,
                         TimestampTz look_started);

// Nothing is left of this priority, and a claim finds that out without a mark.
void forget_mark(const MarkView& view, int16 priority);

// No job of this priority is ready below the key. `expires`: of the mark where the walk began, or 0
// when it began at the front.
void raise_mark(const MarkView& view, int16 priority, OrderKey key, TimestampTz expires,
                TimestampTz walk_started);

}  // namespace pulse
