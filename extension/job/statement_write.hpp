// Rows of our tables written by statements, as any session writes them. This is the way for a table
// on which a DBA hung anything: a trigger, a rule, an index, a constraint or a column. The server
// then fires triggers, computes generated columns and maintains indexes by its own rules.
//
// Each row is a statement of its own, with statement triggers and transition tables. The code of
// triggers runs under the search path of access/search_path.hpp. A trigger, rule or policy that
// suppresses the row raises an error, so that no decision is lost. What a BEFORE trigger changes is
// stored, and the caller gets the row as it was stored.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct JobChange;

// Whether rules, triggers, constraints or policies ask for statements; indexes and columns are the
// caller's to check. A look at what the relation cache has.
bool asks_for_statements(Relation table);

// Columns behind the given ones get their defaults. The result is in the present memory context.
HeapTuple insert_by_statement(Relation table, const Datum* values, const bool* nulls, int columns);

// Writes the version at `tid`, which this transaction has locked, and the snapshot shows. Generated
// columns are left to the server. The result is in the present memory context.
HeapTuple update_by_statement(Relation table, Snapshot snapshot, ItemPointer tid,
                              const JobChange& change);
void delete_by_statement(Relation table, Snapshot snapshot, ItemPointer tid);

}  // namespace pulse
