// Lookup of rows in an index: by id, where the first column of the index is a bigint, or by scan
// keys.
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

constexpr int kIdKeys = 2;  // scan keys that a lookup by id needs

// The caller keeps the table open as long as the lookup. No row is found before the first seek.
void open_index_lookup(IndexLookup* ids, Relation table, Oid index, Snapshot snapshot,
                       int keys = kIdKeys);
void close_index_lookup(IndexLookup* ids);

// Positions before the rows of this id, or of as many keys as the lookup was opened for. May be
// called repeatedly.
void seek_id(IndexLookup* ids, int64 id);
void seek_keys(IndexLookup* rows, ScanKey keys);
bool next_row(IndexLookup* rows);

// Finds the first row of this id and puts it into `row`.
bool find_id(IndexLookup* ids, int64 id);

// Announces the ids of the following find_id() calls, in ascending order; the table's first column
// must be the id. If the ids lie close together, one range scan replaces a descent per id. Only
// find_id() may follow.
void expect_ids(IndexLookup* ids, int64 first, int64 last, int count);

// A scan key on a text column under the C collation: equal, greater, or greater or equal.
void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value);

}  // namespace pulse
