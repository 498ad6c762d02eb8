// Refuses to drop the extension while live jobs exist, because the drop would delete them.
#pragma once

namespace pulse {

// Installs the object access hook; called once, from _PG_init.
void guard_drop();

}  // namespace pulse
