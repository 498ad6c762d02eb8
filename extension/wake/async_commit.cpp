#include "wake/async_commit.hpp"

namespace pulse {
namespace {

struct AsyncWrites {
  bool any;
  bool nothing_else;
  XLogRecPtr end;  // the end of the WAL of the last heartbeat or sweep
};

AsyncWrites writes;
int level_before_commit;
bool is_lowered = false;

}  // namespace

void begin_async_write() {
  bool is_clean = writes.any ? writes.nothing_else && XactLastRecEnd == writes.end
                             : !TransactionIdIsValid(GetTopTransactionIdIfAny());
  writes = {true, is_clean, InvalidXLogRecPtr};
}

void end_async_write() { writes.end = XactLastRecEnd; }

// Lowers the variable that the commit reads, also for whether the commit waits for a standby.
// Changing the setting could fail, and takes longer than a whole heartbeat may take.
void prepare_async_commit() {
  if (!writes.any || !writes.nothing_else || XactLastRecEnd != writes.end) return;
  if (synchronous_commit == SYNCHRONOUS_COMMIT_OFF) return;
  level_before_commit = synchronous_commit;
  synchronous_commit = SYNCHRONOUS_COMMIT_OFF;
  is_lowered = true;
}

void forget_async_writes() {
  if (is_lowered) synchronous_commit = level_before_commit;
  is_lowered = false;
  writes = {};
}

}  // namespace pulse

// pulse_internal.begin_async_write() and pulse_internal.end_async_write(): see
// sql/structure/settings.sql.
PULSE_FUNCTION(pulse_begin_lazy_write) {
  pulse::begin_async_write();
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_end_lazy_write) {
  pulse::end_async_write();
  PG_RETURN_VOID();
}
