#include "claim/token.hpp"

#include "access/catalog.hpp"
#include "access/sequence.hpp"
#include "install/installation.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kSequenceBits = 40;

int64 next_number(Oid sequence) {
  record_installation();
  // Until its end, this transaction now holds the sequence's lock, and adopt_installation() waits
  // for it. The second call sees the changes of an earlier adoption.
  int64 number = take_number(sequence);
  record_installation();
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
  // A worker registers, so this database may have got the extension a short time ago.
  pulse::signal_launcher();
  PG_RETURN_INT64(pulse::next_number(pulse::catalog()->worker_id_seq));
}
