// NOT NULL in rows that are written without the executor, which would check. A row with NULL where
// the catalog says that there is none ends the server: compiled code reads a value there.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Raises 23502 for NULL in a NOT NULL column of the extension or of a DBA. The table must be one
// that catalog() knows.
void refuse_nulls(Relation table, HeapTuple row);

}  // namespace pulse
