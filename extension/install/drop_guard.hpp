// Refuses to drop the extension while there are live jobs, which would go with it.
#pragma once

namespace pulse {

// Hooks into the server's deletion of objects; called once, from _PG_init.
void guard_drop();

}  // namespace pulse
