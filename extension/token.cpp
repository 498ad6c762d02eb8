#include "token.hpp"

#include "catalog.hpp"
#include "liveness.hpp"

namespace pulse {
namespace {

constexpr int kSequenceBits = 40;

int64 next_number(Oid sequence) {
  return static_cast<int64>(current_timeline()) << kSequenceBits |
         nextval_internal(sequence, false);
}

}  // namespace

int64 next_token() { return next_number(catalog()->token_seq); }

}  // namespace pulse

PULSE_FUNCTION(pulse_next_token) { PG_RETURN_INT64(pulse::next_token()); }

PULSE_FUNCTION(pulse_next_worker_id) {
  PG_RETURN_INT64(pulse::next_number(pulse::catalog()->worker_id_seq));
}
