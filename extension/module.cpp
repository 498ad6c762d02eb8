// What the server runs when it loads the library. Everything works after a plain CREATE EXTENSION.
// With shared_preload_libraries, shared memory is sized for the whole server.
#include "server/postgres.hpp"

#include "background/launcher.hpp"
#include "install/drop_guard.hpp"
#include "server/settings.hpp"
#include "shared_setup.hpp"
#include "transaction_end.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

void _PG_init(void) {
  pulse::define_settings();
  pulse::register_transaction_end();
  pulse::guard_drop();
  if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade) return;
  pulse::register_shared_setup();
  pulse::register_launcher();
}

PULSE_FUNCTION(pulse_version) { PG_RETURN_TEXT_P(cstring_to_text(PULSE_VERSION)); }
