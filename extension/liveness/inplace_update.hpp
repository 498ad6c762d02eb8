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

// Overwrites columns in the version that was seen, if it is the last one and nobody holds it: false
// when it is not, or a column is of another kind, and then nothing was done. Counts for everybody
// at once and outlives a failure of this transaction, so only for what is true in any case.
// Whoever updates such a row from what it reads has to lock it first. Logged as a generic record,
// which is what the server offers extensions for pages of their own (access/generic_xlog.h).
bool overwrite_row(Relation table, TupleTableSlot* seen, const FixedColumn* columns, int count);

}  // namespace pulse
