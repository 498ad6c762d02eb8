// The areas of shared memory of a server that preloads this library.
#pragma once

namespace pulse {

// Called from _PG_init while the server preloads libraries.
void register_shared_setup();

}  // namespace pulse
