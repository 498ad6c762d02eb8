#include "shared/hashes.hpp"

#include "server/values.hpp"

namespace pulse {

int queue_bucket(const text* name) { return bucket_of_hash(fnv1a(name)); }

int task_bit(const text* identifier) {
  uint64 hash = fnv1a(identifier);
  return static_cast<int>((hash ^ (hash >> 32)) % kTaskBits);
}

}  // namespace pulse

PULSE_FUNCTION(pulse_queue_slot) {
  PG_RETURN_INT16(static_cast<int16>(pulse::queue_bucket(PG_GETARG_TEXT_PP(0))));
}

// pulse_internal.parent_bucket(parent_id)
PULSE_FUNCTION(pulse_parent_bucket) { PG_RETURN_INT64(pulse::parent_bucket(PG_GETARG_INT64(0))); }
