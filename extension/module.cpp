// The functions that the server runs when it loads the library. All features work after a plain
// CREATE EXTENSION. With shared_preload_libraries, shared memory is sized for the whole server.
#include "server/postgres.hpp"

#include "background/process.hpp"
#include "claim/claims_in_progress.hpp"
#include "claim/low_water_mark.hpp"
#include "counters/counters.hpp"
#include "counters/depths.hpp"
#include "handler/session_state.hpp"
#include "install/drop_guard.hpp"
#include "install/refused_right.hpp"
#include "limit/fair_ring.hpp"
#include "liveness/attachment.hpp"
#include "queue/remembered_queue.hpp"
#include "server/compat.hpp"
#include "server/expected_rows.hpp"
#include "server/settings.hpp"
#include "shared/memory.hpp"
#include "transaction_end.hpp"
#include "wake/prepared_notes.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

namespace pulse {
namespace {

shmem_request_hook_type previous_request_hook = nullptr;
shmem_startup_hook_type previous_startup_hook = nullptr;

extern "C" void pulse_shmem_request() {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(shared_state_size());
  RequestAddinShmemSpace(low_water_marks_size());
  RequestAddinShmemSpace(remembered_queues_size());
  RequestAddinShmemSpace(fair_rings_size());
  RequestAddinShmemSpace(counters_size());
  RequestAddinShmemSpace(depths_size());
  request_depths_lock();
  RequestAddinShmemSpace(claims_in_progress_size());
  RequestAddinShmemSpace(prepared_notes_size());
  RequestAddinShmemSpace(ended_sessions_size());
}

extern "C" void pulse_shmem_startup() {
  if (previous_startup_hook) previous_startup_hook();
  create_shared_state();
  create_low_water_marks();
  create_remembered_queues();
  create_fair_rings();
  create_counters();
  create_depths();
  create_claims_in_progress();
  create_prepared_notes();
  create_ended_sessions();
}

void register_shared_memory() {
  previous_request_hook = replace_shmem_request_hook(pulse_shmem_request);
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = pulse_shmem_startup;
  on_entry_taken_over = [](int database) {
    reset_low_water_marks(database);
    reset_remembered_queues(database);
    reset_fair_rings(database);
    reset_counters(database);
    reset_depths(database);
  };
}

}  // namespace
}  // namespace pulse

void _PG_init(void) {
  pulse::define_settings(pulse::pulse_show_background_sweeps);
  pulse::register_transaction_end();
  pulse::guard_drop();
  pulse::hint_at_grants();
  pulse::watch_session_state();
  pulse::expect_rows();
  if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade) return;
  pulse::register_shared_memory();
  pulse::register_launcher();
}

PULSE_FUNCTION(pulse_version) { PG_RETURN_TEXT_P(cstring_to_text(PULSE_VERSION)); }
