// The due rows of one task, in order, for a claim: an ordered scan that begins each priority at its
// mark, raises the mark over what it walked, and can set rows aside for its claim alone.
#pragma once

#include "access/ordered_scan.hpp"
#include "claim/low_water_mark.hpp"
#include "server/postgres.hpp"

namespace pulse {

// What a scan has seen of the priority that it is in.
struct Walk {
  int priority;         // kNoPriority before the first
  OrderKey start;       // where it began
  OrderKey begin;       // the first key that may be a ready job's
  bool is_left;         // such a job was left to others: the walk says nothing of what follows it
  TimestampTz expires;  // of the mark where the walk began; 0: it began at the front
  TimestampTz started;
  bool can_reserve;  // what it has seen is all there is behind the mark
  FoundMark mark;    // as this walk has found or left it
};
constexpr int kNoPriority = PG_INT32_MAX;

// Rows that the caller has in view, from begin_range() to end_range(), and where to go back to
// should somebody be faster.
struct ReservedRange {
  bool is_open;  // and the walk is still in its priority
  OrderKey first;
  Walk walk;
  Advance outcome;  // unless kDone, the scan ends here, and end_range() goes back
};

struct DueScan : OrderedScan {
  MarkView marks;  // where to begin in each priority, if anything is remembered; set by the caller

  ScanKeyData key_parts[3];  // of a key that is a row; `scan` keeps their address
  Walk walk;
  // Priorities whose marks are remembered: the scan ends before each and goes on at its mark, so
  // that it never looks for the first entry of one behind pages of dead ones.
  int16 known[kMarksPerBit];
  int known_count;
  int next_known;
  int checked;        // the priority below whose mark this scan looks for what nobody told of
  int left_to_look;   // at so many entries; 0: no more
  OrderKey look_end;  // the mark
  int64 look_pages;   // read before it; -1 where it does not begin at the front
  ReservedRange range;
};

// Positions on the first due row; false when there is none.
bool first_due(DueScan* scan);

// The same where the first row is known, and known to be due only later.
bool first_due_beyond(DueScan* scan, int16 priority, TimestampTz run_at);
bool next_due(DueScan* scan);

// Goes on behind what others have taken for themselves since, if the scan is not there yet. True
// when it was moved; `*due` then says whether there is a row at hand.
bool catch_up(DueScan* scan, bool* due);

// The caller wants the row at hand, and may want those that follow. Only while walk.can_reserve.
void begin_range(DueScan* scan);

// What the caller wants ends before the row at hand, or with it. True when all of it is for this
// claim alone; else the scan has gone back, or on behind others, and `*due` says whether there is
// a row at hand.
bool end_range(DueScan* scan, bool with_row_at_hand, bool* due);

// Somebody else has this row of a range.
void give_back_row(DueScan* scan, int16 priority, OrderKey key);

// The row at hand stays for others.
void leave_row(DueScan* scan);
void end_due(DueScan* scan);

}  // namespace pulse
