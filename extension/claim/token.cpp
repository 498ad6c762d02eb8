#include "claim/token.hpp"

#include "access/catalog.hpp"
#include "install/installation.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kSequenceBits = 40;

// The sequences that this transaction has advanced.
bool has_token;
bool has_worker_id;

// Flushes the WAL that keeps the sequence from returning a number again after a crash.
void flush_sequence(Oid sequence) {
  Relation relation = relation_open(sequence, AccessShareLock);
  Buffer buffer = ReadBuffer(relation, 0);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  XLogRecPtr end = PageGetLSN(BufferGetPage(buffer));
  UnlockReleaseBuffer(buffer);
  relation_close(relation, AccessShareLock);
  XLogFlush(end);
}

int64 next_number(Oid sequence) {
  record_installation();
  // From here on, this transaction holds the sequence's lock, and adopt_installation() waits for
  // it. The second call sees what an earlier adoption changed.
  int64 number = nextval_internal(sequence, false);
  record_installation();
  return number_epoch() << kSequenceBits | number;
}

}  // namespace

int64 next_token() {
  has_token = true;
  int64 token = next_number(catalog()->token_seq);
  require_adopted();
  return token;
}

void flush_numbers() {
  // Any other commit waits for its own WAL, which follows that of the sequences.
  if (synchronous_commit != SYNCHRONOUS_COMMIT_OFF) return;
  if (has_token) flush_sequence(catalog()->token_seq);
  if (has_worker_id) flush_sequence(catalog()->worker_id_seq);
}

void forget_numbers() { has_token = has_worker_id = false; }

}  // namespace pulse

PULSE_FUNCTION(pulse_next_token) { PG_RETURN_INT64(pulse::next_token()); }

PULSE_FUNCTION(pulse_next_worker_id) {
  // A worker registers, so this database may have the extension since a short time.
  pulse::signal_launcher();
  pulse::has_worker_id = true;
  PG_RETURN_INT64(pulse::next_number(pulse::catalog()->worker_id_seq));
}
