// Rows of the extension's tables written by statements, as any session writes them. A table needs
// statements when a DBA added a trigger, rule, index, constraint or column to it. The server then
// fires triggers, computes generated columns and maintains indexes by its own rules.
//
// One statement stores a set of new rows; each update or delete is a statement of its own. Both
// kinds of statement fire statement triggers and fill transition tables. Trigger code runs under
// the settings of access/local_settings.hpp. A trigger, rule or policy that suppresses the row
// raises an error, so no decision is lost. The server stores the row as a BEFORE trigger has
// changed it, and the caller gets the stored row.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct JobChange;

// Whether a rule, trigger, constraint or policy requires statements, by the relation cache. The
// caller checks indexes and columns.
bool asks_for_statements(Relation table);

// Inserts rows by their first `columns` columns; the other columns get their defaults. Replaces
// each row by the stored row, in the present memory context.
void insert_by_statement(Relation table, HeapTuple* rows, int count, int columns);

// Writes the row version at `tid`, which this transaction has locked and the snapshot shows. The
// server computes generated columns. The result is in the present memory context.
HeapTuple update_by_statement(Relation table, Snapshot snapshot, ItemPointer tid,
                              const JobChange& change);
void delete_by_statement(Relation table, Snapshot snapshot, ItemPointer tid);

}  // namespace pulse
