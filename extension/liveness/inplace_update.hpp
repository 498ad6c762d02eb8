// Numbers of one row overwritten where they are: no version, no transaction id, nothing for vacuum
// and no wait at the commit.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// A column of eight bytes, not null, behind none but such.
struct FixedColumn {
  AttrNumber column;  // from 1
  int64 value;
};

// A row as it was left: where, and all of it but its visibility.
struct RowImage {
  ItemPointerData tid;
  Buffer buffer;  // had its page then
  Size length;    // 0: longer than fits
  char bytes[256];
};

// Overwrites columns in the version that was seen, if it is the last one and nobody holds it: false
// when it is not, or a column is of another kind, and then nothing was done. Counts for everybody
// at once and outlives a failure of this transaction, so only for what is true in any case.
// Whoever updates such a row from what it reads has to lock it first. Logged as a generic record,
// which is what the server offers extensions for pages of their own (access/generic_xlog.h).
// The image, if one is wanted, is of the row as it was left.
bool overwrite_row(Relation table, TupleTableSlot* seen, const FixedColumn* columns, int count,
                   RowImage* image = nullptr);

// The same without a look for the row: only where it is still as the image has it, which follows.
bool overwrite_image(Relation table, RowImage* image, const FixedColumn* columns, int count);

}  // namespace pulse
