// Rows of one id: a scan of an index whose first column is a bigint.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct IndexLookup {
  Relation table;
  Relation index;
  IndexScanDesc scan;
  TupleTableSlot* row;  // the one that was found last
  bool walks;           // see expect_ids
  bool is_at_row;
};

// The table stays open for as long as the scan; nothing is found before the first seek.
void open_index_lookup(IndexLookup* ids, Relation table, Oid index, Snapshot snapshot);
void close_index_lookup(IndexLookup* ids);

// Begins with the rows of this id; again as often as one likes.
void seek_id(IndexLookup* ids, int64 id);
bool next_of_id(IndexLookup* ids);

// Puts the first row of this id at hand.
bool find_id(IndexLookup* ids, int64 id);

// Of a table whose first column is the id: these will be looked for, by find_id alone and in this
// order, which ascends. Where they lie so close that one walk meets them all, it spares the way
// down the index.
void expect_ids(IndexLookup* ids, int64 first, int64 last, int count);

// A key on a text column under the C collation, to be equal to or greater than.
void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value);

}  // namespace pulse
