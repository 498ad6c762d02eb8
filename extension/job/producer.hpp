// The producer of a job: the role that has added the job. A producer may name only its own jobs, by
// key or by id. Two roles are one producer where membership joins them, whatever a superuser may
// do. A producer is stored by name, so that a dump is restored where the role does not exist.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Returns the name of the calling role, as pulse.job.added_by has it.
NullableDatum asking_producer();

// Whether a job of the producer `added_by` may be named by the producer `asking`. Jobs without a
// producer belong to all, and the extension's owner, superusers and operators may name all jobs.
bool may_name(const NullableDatum& added_by, const NullableDatum& asking);

// Raises 42501 for a job key under which a job of another producer lives.
[[noreturn]] void refuse_key(const text* key);

}  // namespace pulse
