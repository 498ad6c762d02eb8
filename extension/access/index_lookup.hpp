// Lookup of rows by id, in an index whose first column is a bigint.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct IndexLookup {
  Relation table;
  Relation index;
  IndexScanDesc scan;
  TupleTableSlot* row;   // the row found last
  bool uses_range_scan;  // true after expect_ids() chose one range scan
  bool has_row;
};

// The caller keeps the table open as long as the lookup. No row is found before the first seek.
void open_index_lookup(IndexLookup* ids, Relation table, Oid index, Snapshot snapshot);
void close_index_lookup(IndexLookup* ids);

// Positions before the rows of this id; may be called repeatedly.
void seek_id(IndexLookup* ids, int64 id);
bool next_of_id(IndexLookup* ids);

// Finds the first row of this id and puts it into `row`.
bool find_id(IndexLookup* ids, int64 id);

// Announces the ids of the following find_id() calls, in ascending order; the table's first column
// must be the id. If the ids lie close together, one range scan replaces a descent per id. Only
// find_id() may follow.
void expect_ids(IndexLookup* ids, int64 first, int64 last, int count);

// A scan key on a text column under the C collation: equal, greater, or greater or equal.
void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value);

}  // namespace pulse
