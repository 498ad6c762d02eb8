// Requests and creates every area of shared memory, in a server that preloads the library.
#pragma once

namespace pulse {

// Called from _PG_init while the server preloads libraries.
void register_shared_setup();

}  // namespace pulse
