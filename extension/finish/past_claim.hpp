// Calls whose claim does not own a running job: either the call repeats an end that is recorded, or
// the claim is lost.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The reason to refuse this token. NULL when it is recorded that the same token ended the attempt
// with this outcome. See sql/finish.sql.
const char* refusal_of(const NullableDatum& job_id, const NullableDatum& token,
                       const char* outcome);

// Raises PU001.
[[noreturn]] void raise_stale(const NullableDatum& job_id, const char* reason);

// Returns if the call repeats a recorded end; otherwise raises PU001.
void require_repeat(const NullableDatum& job_id, const NullableDatum& token, const char* outcome);

// The state of a live or finished job, or NULL.
text* state_of_job(Datum job_id);

}  // namespace pulse
