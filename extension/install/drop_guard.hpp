// Refuses to drop the extension while live jobs exist, because the drop would delete them.
#pragma once

namespace pulse {

// Installs the object access hook; called once, from _PG_init.
void guard_drop();

// Finds out, before a commit, whether the transaction drops the extension; may raise.
void confirm_drop();

// Ends the transaction's drop: once it is committed, other databases may have the slot of this
// one in shared memory. Sessions that wait here return. Safe in callbacks.
void end_drop(bool is_committed);

}  // namespace pulse
