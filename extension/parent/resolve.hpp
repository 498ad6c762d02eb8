// Parent marks: a parent mark says that a parent may have ended for which jobs wait.
#pragma once

#include "shared/memory.hpp"

namespace pulse {

// Lets jobs start, or ends jobs, after the end of the parents of this bucket. True when work is
// left: the parent mark is set again at the end of the transaction.
bool resolve_waits(int bucket);

// Sets the parent marks of all awaited parents.
void mark_all_parents(DatabaseState* database);

}  // namespace pulse
