// Rows of our tables written by statements, as any session writes them. This is the way for a table
// on which a DBA hung anything: a trigger, a rule, an index, a constraint or a column. The server
// then fires triggers, computes generated columns and maintains indexes by its own rules.
//
// New rows are stored by one statement, and each other change is a statement of its own; both fire
// statement triggers and fill transition tables. The code of
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

// Inserts rows, of which so many columns are known; the others get their defaults. Puts each row as
// it was stored in its place, in the present memory context.
void insert_by_statement(Relation table, HeapTuple* rows, int count, int columns);

// Writes the version at `tid`, which this transaction has locked, and the snapshot shows. Generated
// columns are left to the server. The result is in the present memory context.
HeapTuple update_by_statement(Relation table, Snapshot snapshot, ItemPointer tid,
                              const JobChange& change);
void delete_by_statement(Relation table, Snapshot snapshot, ItemPointer tid);

}  // namespace pulse
