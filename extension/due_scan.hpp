// The due rows below one prefix of an index that goes on with (priority, run_at, id), in order.
// What is not due yet costs one step per priority, however much of it there is.
#pragma once

#include "heads.hpp"
#include "prelude.hpp"

namespace pulse {

// What a scan has seen of the priority that it is in.
struct Walk {
  int priority;         // kNoPriority before the first
  HeadKey start;        // where it began
  HeadKey begin;        // the first key that may be a ready job's
  bool is_left;         // such a job was left to others: the walk says nothing of what follows it
  TimestampTz expires;  // of the head where the walk began; 0: it began at the front
  TimestampTz started;
};
constexpr int kNoPriority = PG_INT32_MAX;

struct DueScan {
  // set by the caller
  Relation relation;
  Relation index;
  Snapshot snapshot;
  TimestampTz now;
  int prefix;           // how many leading columns are fixed, at most 2
  ScanKeyData keys[4];  // the fixed ones; the scan adds where it begins and ends
  Oid state;            // rows in another state are stepped over
  HeadView heads;       // where to begin in each priority, if anything is remembered
  // the row at hand, valid after true was returned
  TupleTableSlot* slot;
  int16 priority;
  TimestampTz run_at;
  int64 id;
  // the earliest run_at that was stepped over; 0 when there was none
  TimestampTz next_due;
  IndexScanDesc scan;
  ScanKeyData key_parts[3];  // of a key that is a row; `scan` keeps their address
  Walk walk;
  // Priorities whose heads are remembered: the scan ends before each and goes on at its head, so
  // that it never looks for the first entry of one behind pages of dead ones.
  int16 known[kHeadsPerBit];
  int known_count;
  int next_known;
  int checked;       // the priority below whose head this scan looks for what nobody told of
  int left_to_look;  // at so many entries; 0: no more
  HeadKey look_end;  // the head
  int64 look_pages;  // read before it; -1 where it does not begin at the front
};

void fix_text(DueScan* scan, Datum value);
void fix_int2(DueScan* scan, int16 value);

// Positions on the first due row; false when there is none.
bool first_due(DueScan* scan);

// The same where the first row is known, and known to be due only later.
bool first_due_beyond(DueScan* scan, int16 priority, TimestampTz run_at);
bool next_due(DueScan* scan);

// The row at hand stays for others.
void leave_row(DueScan* scan);
void end_due(DueScan* scan);

// True when a sorts before b in the order of promise P8.
bool sorts_before(const DueScan* a, const DueScan* b);

// Equality or greater-than keys on a text column under the C collation.
void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value);

}  // namespace pulse
