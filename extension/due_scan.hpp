// The due rows below one prefix of an index that goes on with (priority, run_at, id), in order.
// What is not due yet costs one step per priority, however much of it there is.
#pragma once

#include "prelude.hpp"

namespace pulse {

struct DueScan {
  // set by the caller
  Relation relation;
  Relation index;
  Snapshot snapshot;
  TimestampTz now;
  int prefix;           // how many leading columns are fixed, at most 2
  ScanKeyData keys[3];  // the fixed ones; the scan adds its own
  // the row at hand, valid after true was returned
  TupleTableSlot* slot;
  int16 priority;
  TimestampTz run_at;
  int64 id;
  // the earliest run_at that was stepped over; 0 when there was none
  TimestampTz next_due;
  IndexScanDesc scan;
};

void fix_text(DueScan* scan, Datum value);
void fix_int2(DueScan* scan, int16 value);

// Positions on the first due row; false when there is none.
bool first_due(DueScan* scan);

// The same where the first row is known, and known to be due only later.
bool first_due_beyond(DueScan* scan, int16 priority, TimestampTz run_at);
bool next_due(DueScan* scan);
void end_due(DueScan* scan);

// True when a sorts before b in the order of promise P8.
bool sorts_before(const DueScan* a, const DueScan* b);

// Equality or greater-than keys on a text column under the C collation.
void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value);

}  // namespace pulse
