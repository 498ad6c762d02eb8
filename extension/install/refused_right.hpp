// Installation: names the grants of pg_pulse in the server's refusals of pg_pulse's objects. The
// server refuses a call before any code of pg_pulse runs, and gives no hint.
#pragma once

namespace pulse {

// Installs the hook for messages; called once, from _PG_init. A library that is not preloaded sees
// the refusals of sessions that have called a function of pg_pulse.
void hint_at_grants();

}  // namespace pulse
