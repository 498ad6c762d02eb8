// Scans the due rows under one prefix of an index that continues with (priority, run_at, id), in
// the order of the index. Jobs that are not due yet cost one step per priority, whatever their
// number.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The order of promise P8.
struct JobOrder {
  int16 priority;
  TimestampTz run_at;
  int64 id;
};
JobOrder order_of(TupleTableSlot* row);
bool sorts_before(const JobOrder* a, const JobOrder* b);

// The base is the order of the current row, valid after a function returned true.
struct OrderedScan : JobOrder {
  // set by the caller
  Relation relation;
  Relation index;
  Snapshot snapshot;
  TimestampTz now;
  int prefix;           // number of fixed leading columns, at most 2
  ScanKeyData keys[4];  // the fixed columns, then the lower and the upper bound
  Oid state;            // rows in another state are skipped

  ScanKeyData key_parts[3];  // of a row comparison key; `scan` keeps the address of the array
  TupleTableSlot* row;       // the current row

  // the earliest run_at of the skipped rows that are not due; 0: none
  TimestampTz next_due;

  // the first row that was not due or was left, if any
  bool has_left;
  JobOrder left;

  IndexScanDesc scan;
};

// Fixes the next leading column to a value.
void fix_text(OrderedScan* scan, Datum value);

// Positions on the first due row, or the first due row that does not sort before `from`; false when
// no row is left.
bool first_due_in_order(OrderedScan* scan);
bool first_due_from(OrderedScan* scan, const JobOrder& from);
bool next_due_in_order(OrderedScan* scan);

// Records that the caller leaves the current row unchanged.
void leave_in_order(OrderedScan* scan);
void end_ordered_scan(OrderedScan* scan);

// --- for a scan that repositions itself ----------------------------------------------------------

void begin_ordered_scan(OrderedScan* scan);

// Restarts the scan at priorities that compare with `bound` as `strategy` says, up to `last`.
void rescan_priorities(OrderedScan* scan, StrategyNumber strategy, Oid function, int16 bound,
                       int16 last);

// A comparison with the last `count` of (bucket, name, priority, run_at, id), columns of an index
// from `column` on. The key refers to `parts`.
void init_row_key(ScanKey key, ScanKeyData* parts, int column, StrategyNumber strategy,
                  const Datum* values, int count);

// Restarts the scan at this place in the order, up to priority `last`.
void rescan_from(OrderedScan* scan, const JobOrder& from, int16 last);

// Restarts the scan at the key that the caller has put after the prefix, up to priority `last`.
void rescan_up_to(OrderedScan* scan, int16 last);

// Reads the current row; false when the row is in another state.
bool read_ordered_row(OrderedScan* scan);

// True when the current row is due; otherwise the row's run_at may become `next_due`.
bool is_row_due(OrderedScan* scan);

// The number of pages that this backend has read so far.
int64 pages_read();

}  // namespace pulse
