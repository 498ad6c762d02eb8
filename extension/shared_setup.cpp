#include "shared_setup.hpp"

#include "claim/claims_in_progress.hpp"
#include "claim/low_water_mark.hpp"
#include "liveness/ended_sessions.hpp"
#include "server/compat.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

shmem_request_hook_type previous_request_hook = nullptr;
shmem_startup_hook_type previous_startup_hook = nullptr;

extern "C" void pulse_shmem_request() {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(shared_state_size());
  RequestAddinShmemSpace(low_water_marks_size(kPreloadedDatabases));
  RequestAddinShmemSpace(claims_in_progress_size());
  RequestAddinShmemSpace(ended_sessions_size());
}

extern "C" void pulse_shmem_startup() {
  if (previous_startup_hook) previous_startup_hook();
  create_shared_state();
  create_low_water_marks(kPreloadedDatabases);
  create_claims_in_progress();
  create_ended_sessions();
}

}  // namespace

void register_shared_setup() {
  previous_request_hook = replace_shmem_request_hook(pulse_shmem_request);
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = pulse_shmem_startup;
  on_slot_taken_over = reset_low_water_marks;
}

}  // namespace pulse
