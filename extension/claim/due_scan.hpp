// The scan of a claim over the due rows of one task, in order. It begins each priority at the
// low-water mark of that priority, which it raises over the entries it has passed. It can also
// reserve a range of rows for its claim.
#pragma once

#include "access/ordered_scan.hpp"
#include "claim/low_water_mark.hpp"
#include "server/postgres.hpp"

namespace pulse {

// The part of a scan within the current priority.
struct Walk {
  int priority;    // kNoPriority before the first priority
  OrderKey start;  // first key of the walk
  OrderKey begin;  // no ready job lies between `start` and this key
  bool is_left;    // a ready job was left for other claims, so `begin` stays
  // Expiry of the low-water mark where the walk began; 0: the walk began at the front.
  TimestampTz expires;
  TimestampTz started;
  bool can_reserve;  // the walk has seen every entry since the low-water mark
};
constexpr int kNoPriority = PG_INT32_MAX;

struct DueScan : OrderedScan {
  // Low-water marks of the task, set by the caller; without a bucket there are none.
  LowWaterView low_water;

  Walk walk;
  // Priorities with a known low-water mark. The scan ends before each of these priorities, and
  // restarts at the priority's low-water mark. So it never searches for a priority's first entry
  // behind pages of dead entries.
  int16 known[kLowWaterMarksPerBit];
  int known_count;
  int next_known;
  int checked;         // priority whose expired low-water mark this scan checks below
  int left_to_check;   // entries still to check below the low-water mark; 0: the check is over
  bool has_checked;    // the check has read an entry
  OrderKey check_end;  // the low-water mark, where the check ends
  int64 check_pages;   // pages read before the check; -1: the check does not begin at the front
  bool is_range_open;  // begin_range() was called, and the walk is still in the range's priority
  Reservation range;   // the reservation of the range that was closed last
};

// Moves to the first due row; false when there is none.
bool first_due(DueScan* scan);

// Moves to the next due row; false when there is none.
bool next_due(DueScan* scan);

// Moves past the ranges that other claims have reserved since, if the scan is before the end of
// such a range. True when the scan has moved; `*due` then says whether it has a current row.
bool catch_up(DueScan* scan, bool* due);

// Begins a range at the current row. Requires walk.can_reserve.
void begin_range(DueScan* scan);

// Ends the range before the current row, and reserves as much of the range for this claim as other
// claims have left.
Reservation end_range(DueScan* scan);

// Leaves a row of this priority to other claims, after the scan has passed it.
void leave_passed_row(DueScan* scan, int16 priority, OrderKey key);

// Leaves the current row to other claims.
void leave_row(DueScan* scan);
// Ends the walk, which may raise the low-water mark, and closes the scan.
void end_due(DueScan* scan);

}  // namespace pulse
