#include "claim/token.hpp"

#include "access/catalog.hpp"
#include "install/installation.hpp"
#include "wake/background_wake.hpp"

namespace pulse {
namespace {

constexpr int kSequenceBits = 40;

int64 next_number(Oid sequence) {
  settle_installation();
  // From here on this transaction holds the sequence, and adopt_installation() waits for it; what
  // that changed before is seen by looking once more.
  int64 number = nextval_internal(sequence, false);
  settle_installation();
  return number_epoch() << kSequenceBits | number;
}

}  // namespace

int64 next_token() {
  int64 token = next_number(catalog()->token_seq);
  require_adopted();
  return token;
}

}  // namespace pulse

PULSE_FUNCTION(pulse_next_token) { PG_RETURN_INT64(pulse::next_token()); }

PULSE_FUNCTION(pulse_next_worker_id) {
  // Somebody comes to work here, so there may be an extension where there was none.
  pulse::signal_launcher();
  PG_RETURN_INT64(pulse::next_number(pulse::catalog()->worker_id_seq));
}
