// Scans the due rows of one task in order, for a claim. The scan begins each priority at its
// low-water mark and raises the mark over the entries it has passed. It can also reserve a range of
// rows for its claim.
#pragma once

#include "access/ordered_scan.hpp"
#include "claim/low_water_mark.hpp"
#include "server/postgres.hpp"

namespace pulse {

// What a scan has seen of its current priority.
struct Walk {
  int priority;         // kNoPriority before the first one
  OrderKey start;       // first key of the walk
  OrderKey begin;       // no ready job lies between `start` and this key
  bool is_left;         // a ready job was left for other claims, so `begin` stays
  TimestampTz expires;  // expiry of the mark where the walk began; 0: it began at the front
  TimestampTz started;
  bool can_reserve;  // the walk has seen every entry since the mark
};
constexpr int kNoPriority = PG_INT32_MAX;

struct DueScan : OrderedScan {
  MarkView marks;  // marks of the task, set by the caller; without a bucket there are none

  Walk walk;
  // Priorities with a known mark. The scan ends before each of them and restarts at its mark. So it
  // never searches for a priority's first entry behind pages of dead entries.
  int16 known[kMarksPerBit];
  int known_count;
  int next_known;
  int checked;         // priority whose expired mark this scan checks below
  int left_to_check;   // entries still to check below the mark; 0: the check is over
  bool has_checked;    // the check has read an entry
  OrderKey check_end;  // the mark, where the check ends
  int64 check_pages;   // pages read before the check; -1: it does not begin at the front
  bool is_range_open;  // begin_range() was called, and the walk is still in the range's priority
  Reservation range;   // of the range that was closed last
};

// Positions on the first due row; false when there is none.
bool first_due(DueScan* scan);

bool next_due(DueScan* scan);

// Continues after the ranges that other claims have reserved since, if the scan is before their
// end. True when it moved; `*due` then says whether it has a current row.
bool catch_up(DueScan* scan, bool* due);

// Begins a range at the current row. Requires walk.can_reserve.
void begin_range(DueScan* scan);

// Ends the range before the current row and reserves it for this claim, as far as possible.
Reservation end_range(DueScan* scan);

// Leaves a row of this priority, which the scan has passed, to other claims.
void leave_passed_row(DueScan* scan, int16 priority, OrderKey key);

// Leaves the current row to other claims.
void leave_row(DueScan* scan);
void end_due(DueScan* scan);

}  // namespace pulse
