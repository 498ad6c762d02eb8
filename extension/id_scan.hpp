// Rows of one id: a scan of an index whose first column is a bigint.
#pragma once

#include "prelude.hpp"

namespace pulse {

struct IdScan {
  Relation table;
  Relation index;
  IndexScanDesc scan;
  TupleTableSlot* row;  // the one that was found last
};

// The table stays open for as long as the scan; nothing is found before the first seek.
void open_id_scan(IdScan* ids, Relation table, Oid index, Snapshot snapshot);
void close_id_scan(IdScan* ids);

// Begins with the rows of this id; again as often as one likes.
void seek_id(IdScan* ids, int64 id);
bool next_of_id(IdScan* ids);

// Puts the first row of this id at hand.
inline bool find_id(IdScan* ids, int64 id) {
  seek_id(ids, id);
  return next_of_id(ids);
}

}  // namespace pulse
