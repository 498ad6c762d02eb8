// Low-water marks: owns, for each task and priority, a key below which no job is ready. Claims
// start at this key. At the front of the index lie dead entries and entries of running in-place
// claims: thousands after a busy second, millions while an old snapshot holds back vacuum.
//
// Invariants:
// - The lock of a bucket (FrontBucket::lock) guards all its fields.
// - No ready job of a task and priority lies below the low-water mark. A claim raises the
//   low-water mark over the entries that it has passed. A transaction that makes a job ready below
//   the low-water mark lowers it, after the commit is visible.
// - A claim raises a low-water mark no further than the keys added to the bucket since before the
//   claim's snapshot. So a commit that the snapshot missed loses no job. For this rule each bucket
//   keeps the last keys of the lowerings that it counts (shared/front.hpp).
// - A claim raises the low-water mark over the jobs that it is about to take (reserved_range.cpp).
//   For jobs of the range that it cannot lock, it lowers the low-water mark again, and so does the
//   end of an undone transaction.
//
// The claim after the expiry checks up to 1,000 entries below the low-water mark, and continues at
// the low-water mark; a later claim checks the next entries. So no claim takes long, however many
// entries an old snapshot keeps there, and all checks together take a fiftieth of the time. The
// low-water marks of a claim share both limits, so that each is checked.
#pragma once

#include "server/postgres.hpp"
#include "shared/front.hpp"

namespace pulse {

// Low-water marks of a task bit. A claim scans a further task or priority from the front.
constexpr int kLowWaterMarksPerBit = 32;
constexpr int kRecentKeys = 64;

struct OrderKey {
  TimestampTz run_at;
  int64 id;
};

bool precedes(OrderKey a, OrderKey b);

// Guard: FrontBucket::lock.
struct LowWaterMark {
  uint64 task;
  OrderKey key;
  OrderKey checked;  // the key up to which the checks have come
  TimestampTz expires;
  int16 priority;
  // The low-water mark has expired, and one claim checks below the key; other claims start at the
  // key.
  bool is_checked;
};

// The low-water marks of all tasks that share a task bit. Guard: FrontBucket::lock.
struct LowWaterBucket : FrontBucket {
  TimestampTz recent[kRecentKeys];  // run_at of the last lowerings, at generation % kRecentKeys
  int used;                         // how many of the array are in use
  LowWaterMark mark[kLowWaterMarksPerBit];
};

// The low-water marks of one task, as one claim uses them.
struct LowWaterView {
  LowWaterBucket* bucket;  // NULL: this server keeps no low-water marks
  int bit;
  uint64 task;
  uint64 generation;       // of the bucket, read before the claim's snapshot
  TimestampTz own_run_at;  // run_at of the first job that this transaction made ready
  int sharers;             // about how many low-water marks share the checks of the claim
};

// Size of the low-water marks, in bytes. Only a server that preloads the
// library keeps low-water marks.
Size low_water_marks_size();
void create_low_water_marks();

// Clears the low-water marks of a database entry that another database takes over.
void reset_low_water_marks(int database);

// The buckets of this database, one for each task bit; NULL when this server keeps no
// low-water marks.
LowWaterBucket* low_water_buckets();

// Lowers the low-water marks of this database, for each task bit to the earliest run_at of the bit.
// Never raises an error.
void lower_low_water_marks_to(const EarliestRunAt& earliest);

// A hash that identifies the task in this job table.
uint64 hash_of_task(const text* identifier);

// Stores the priorities with a low-water mark, in ascending order, at most kLowWaterMarksPerBit;
// returns their number.
int low_water_priorities(const LowWaterView& view, int16* priorities);

// A low-water mark as read by a claim. Without a low-water mark, both keys precede every job and
// `expires` is 0.
struct FoundLowWater {
  bool is_to_check;  // expired: this claim checks below `key`, from `checked` on
  OrderKey key;
  OrderKey checked;
  TimestampTz expires;
};

// The low-water mark at which a claim begins. If the low-water mark has expired and `checks` is
// true, this claim must check below the key.
FoundLowWater find_low_water_mark(const LowWaterView& view, int16 priority, bool checks = true);

// The low-water mark as stored; begins no check.
FoundLowWater current_low_water_mark(const LowWaterView& view, int16 priority);

// The outcome of advance_low_water_mark().
struct Reservation {
  bool is_done;   // false: nothing moved, as a job before the end became ready since the snapshot
  OrderKey from;  // other claims have reserved the jobs before this key
};

// Moves the low-water mark to `to`, and so reserves the jobs from `from` to `to` for this claim.
// Call this function after note_passed(), so that an abort lowers the low-water mark again.
Reservation advance_low_water_mark(const LowWaterView& view, int16 priority, OrderKey to);

// Lowers the low-water mark to a job that the claim leaves to other claims.
void return_to_low_water_mark(const LowWaterView& view, int16 priority, OrderKey key);

// Records that no job is ready below `checked`, according to a check that began at check_started. A
// later check continues at `checked`. Returns when the low-water mark
// expires.
TimestampTz record_checked(const LowWaterView& view, int16 priority, OrderKey checked,
                           TimestampTz check_started);

// Removes the low-water mark of a priority without entries: a claim notices the missing entries
// without it.
void forget_low_water_mark(const LowWaterView& view, int16 priority);

// Raises the low-water mark: no job of this priority is ready below the key. `expires` is of
// the low-water mark where the walk began; 0 if the walk began at the front.
void raise_low_water_mark(const LowWaterView& view, int16 priority, OrderKey key,
                          TimestampTz expires, TimestampTz walk_started);

}  // namespace pulse
