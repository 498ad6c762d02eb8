// Low-water marks: for each task and priority, a key below which no job is ready. Claims start
// there. At the front of the index lie dead entries and entries of running in-place claims:
// thousands after a busy second, millions while an old snapshot holds back vacuum.
//
// A claim raises a mark over the entries it has passed. A transaction that makes a job ready below
// a mark lowers it, after its commit is visible. A claim may have missed such a commit when it
// raises a mark. So each bucket counts lowerings and keeps the last keys, and a claim raises a mark
// no further than the keys added since before its snapshot.
//
// A claim moves the mark over the jobs that it is about to take (reserved_range.cpp). Jobs of the
// range that it cannot lock lower the mark again, and so does the end of an undone transaction.
//
// Some rows become ready without lowering a mark: rows written by hand, rows of a prepared
// transaction of which no notes are left (prepared_notes.hpp). So marks expire. The next claim then
// checks up to 1,000 entries below the mark and continues at the mark; a later claim checks the
// next entries. So no claim takes long, however many entries an old snapshot keeps there, and all
// checks together take a fiftieth of the time. Claims share both limits among their marks, so that
// each mark is checked, however many there are.
#pragma once

#include "server/postgres.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {

// A task beyond the limit, or a priority, is scanned from its front.
constexpr int kMarksPerBit = 32;
constexpr int kRecentKeys = 64;

struct OrderKey {
  TimestampTz run_at;
  int64 id;
};

bool precedes(OrderKey a, OrderKey b);

struct LowWaterMark {
  uint64 task;
  OrderKey key;
  OrderKey checked;  // the key up to which the checks have come
  TimestampTz expires;
  int16 priority;
  bool is_checked;  // it expired and one claim checks below it; other claims start at it
};

// The marks of all tasks that share a task bit.
struct MarkBucket {
  slock_t lock;
  uint64 generation;                // number of lowerings
  TimestampTz recent[kRecentKeys];  // run_at of the last lowerings, at generation % kRecentKeys
  int used;                         // number of marks
  LowWaterMark mark[kMarksPerBit];
};

// What a claim needs to use the marks of one task.
struct MarkView {
  MarkBucket* bucket;  // NULL: this server keeps no marks
  int bit;
  uint64 task;
  uint64 generation;       // of the bucket, read before the claim's snapshot
  TimestampTz own_run_at;  // run_at of the first job that this transaction made ready
  int sharers;             // number of marks that share the checks of the claim, about
};

// Shared memory for that many databases; only in a server that preloads the library.
Size low_water_marks_size(int databases);
void create_low_water_marks(int databases);

// Clears the marks of a slot that another database takes over.
void reset_low_water_marks(int database);

// The bucket of a task bit, for the database in this slot; NULL when this server keeps no marks.
MarkBucket* mark_bucket(int database, int bit);

// Lowers the marks of this database, each to the earliest run_at of its task bit. Never raises an
// error.
void lower_marks_to(const EarliestRunAt& earliest);

// The bucket's generation; call it before the claim's snapshot is taken.
uint64 mark_generation(MarkBucket* bucket);

// A hash that identifies the task in this job table.
uint64 mark_task(const text* identifier);

// Stores the priorities with a mark, in ascending order, at most kMarksPerBit; returns their
// number.
int marked_priorities(const MarkView& view, int16* priorities);

// A mark as a claim finds it. Without a mark, its keys precede every job and `expires` is 0.
struct FoundMark {
  bool is_to_check;  // the mark expired: this claim checks below it, from `checked` on
  OrderKey key;
  OrderKey checked;
  TimestampTz expires;
};

// The mark at which a claim begins. An expired mark makes this claim check below it, if it checks.
FoundMark find_mark(const MarkView& view, int16 priority, bool checks = true);

// The mark as it is; begins no check.
FoundMark current_mark(const MarkView& view, int16 priority);

// What advance_mark() has reserved.
struct Reservation {
  bool is_done;   // false: a job before the end became ready since the snapshot, the mark stays
  OrderKey from;  // other claims have reserved the jobs before this key
};

// Moves the mark to `to`, which reserves the jobs from `from` to there for this claim. Call it
// after note_passed(), so that an abort lowers the mark again.
Reservation advance_mark(const MarkView& view, int16 priority, OrderKey to);

// Lowers the mark to a job that the claim leaves to other claims.
void return_to_mark(const MarkView& view, int16 priority, OrderKey key);

// Records that no job is ready below `checked`, as a check begun at that time saw. A later check
// continues there. Returns when the mark expires.
TimestampTz record_checked(const MarkView& view, int16 priority, OrderKey checked,
                           TimestampTz check_started);

// Removes the mark: the priority has no entries, and a claim finds that out without it.
void forget_mark(const MarkView& view, int16 priority);

// Raises the mark: no job of this priority is ready below the key. `expires` belongs to the mark
// where the walk began; 0 if it began at the front.
void raise_mark(const MarkView& view, int16 priority, OrderKey key, TimestampTz expires,
                TimestampTz walk_started);

}  // namespace pulse
