// What becomes of a call whose claim does not own a running job: it repeats what is recorded as
// done, or the claim is lost.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Why this token is refused. NULL where the same token ended the attempt with this outcome before,
// which is recorded. See sql/finish.sql.
const char* refusal_of(const NullableDatum& job_id, const NullableDatum& token,
                       const char* outcome);

// Raises PU001.
[[noreturn]] void raise_stale(const NullableDatum& job_id, const char* reason);

// Returns where the call repeats what is recorded, or else raises PU001.
void require_repeat(const NullableDatum& job_id, const NullableDatum& token, const char* outcome);

// The state of a live or finished job, or NULL.
text* state_of_job(Datum job_id);

}  // namespace pulse
