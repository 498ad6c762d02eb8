// Installation: refuses to drop the extension while live jobs exist, because the drop would delete
// the jobs.
#pragma once

namespace pulse {

// Installs the object access hook; called once, from _PG_init.
void guard_drop();

// Finds out, before a commit, whether the transaction drops the extension; may raise.
void confirm_drop();

// Ends the transaction's drop: the commit gives this database's entry in shared memory to other
// databases, and waiting sessions of this database return. Safe in callbacks.
void end_drop(bool is_committed);

}  // namespace pulse
