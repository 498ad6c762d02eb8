// The due rows below one prefix of an index that goes on with (priority, run_at, id), in order.
// What is not due yet costs one step per priority, however much of it there is.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct OrderedScan {
  // set by the caller
  Relation relation;
  Relation index;
  Snapshot snapshot;
  TimestampTz now;
  int prefix;           // how many leading columns are fixed, at most 2
  ScanKeyData keys[4];  // the fixed ones, then where the scan begins and where it ends
  Oid state;            // the scan steps over rows in another state

  // the row at hand, valid after true was returned
  TupleTableSlot* slot;
  int16 priority;
  TimestampTz run_at;
  int64 id;

  // the earliest run_at that was stepped over; 0 when there was none
  TimestampTz next_due;

  IndexScanDesc scan;
};

// Fix the next leading column.
void fix_text(OrderedScan* scan, Datum value);
void fix_int2(OrderedScan* scan, int16 value);

// Positions on the first due row; false when there is none.
bool first_due_in_order(OrderedScan* scan);
bool next_due_in_order(OrderedScan* scan);
void end_ordered_scan(OrderedScan* scan);

// True when the row at hand of `a` comes before that of `b` in the order of promise P8.
bool sorts_before(const OrderedScan* a, const OrderedScan* b);

// --- for a scan that chooses its own way through the index --------------------------------------

void begin_ordered_scan(OrderedScan* scan);

// Begins the scan anew: at a priority of this relation to the bound, up to the last priority.
void rescan_priorities(OrderedScan* scan, StrategyNumber strategy, Oid function, int16 bound,
                       int16 last);

// Begins the scan anew at the key that the caller has put behind the prefix, up to the last
// priority.
void rescan_up_to(OrderedScan* scan, int16 last);

// Reads the row at hand; false when it is in another state.
bool read_ordered_row(OrderedScan* scan);

// Notes the row at hand as not due, unless it is.
bool is_row_due(OrderedScan* scan);

}  // namespace pulse
