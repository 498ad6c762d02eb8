// Callbacks for the end of a transaction or savepoint. Only a pre-commit callback may raise, as a
// fence does to refuse. Callbacks of a commit, an abort or a savepoint's end must not fail. They
// allocate nothing, run no SQL and use only shared memory found before.
#include "transaction_end.hpp"

#include "access/sequence.hpp"
#include "claim/claims_in_progress.hpp"
#include "claim/low_water_mark.hpp"
#include "counters/noted_attempts.hpp"
#include "counters/noted_depths.hpp"
#include "finish/fence.hpp"
#include "handler/session_state.hpp"
#include "install/drop_guard.hpp"
#include "limit/queue_marks.hpp"
#include "limit/rate_credit.hpp"
#include "liveness/attachment.hpp"
#include "queue/remembered_queue.hpp"
#include "server/postgres.hpp"
#include "wake/async_commit.hpp"
#include "wake/end_waiters.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/prepared_notes.hpp"
#include "wake/wait_for_job.hpp"

namespace pulse {
namespace {

void before_commit() {
  check_fences();
  confirm_drop();
  // A sweep that commits asynchronously may have added a job.
  prepare_async_commit();
  flush_numbers();
}

void on_commit() {
  forget_session_state();
  forget_async_writes();
  forget_numbers();
  // Low-water marks are lowered before workers are woken, so that a woken claim finds the jobs of
  // this transaction.
  lower_low_water_marks_to(made_ready());
  lower_fronts_to(made_parked());
  publish_credit();
  note_ends_of_parents();
  wake_for_commit();
  wake_for_ends();
  count_noted();
  add_noted_depths();
  forget_unused_wakeup();
  forget_fences();
  leave_attachments();
  end_queue_checks(true);
  end_drop(true);
}

void on_abort() {
  abort_session_state(TopSubTransactionId);
  forget_async_writes();
  forget_numbers();
  // Later claims check again the entries that this transaction moved low-water marks over.
  lower_low_water_marks_to(gone_past());
  wake_for_abort();
  forget_ends();
  forget_noted();
  forget_noted_depths();
  forget_credit();
  leave_end_waiting();
  forget_fences();
  keep_attachments(TopSubTransactionId);
  end_queue_checks(false);
  end_drop(false);
  leave_waiting();
}

void on_prepare() {
  withdraw_claims();
  leave_attachments_to_prepared();
  leave_notes_to_prepared();
  leave_noted_depths_to_prepared();
  on_abort();
}

void on_savepoint_abort(SubTransactionId undone) {
  abort_session_state(undone);
  drop_fences(undone);
  keep_attachments(undone);
  end_queue_checks(false);
  forget_noted_since(undone);
  forget_noted_depths_since(undone);
  forget_credit();
  lower_low_water_marks_to(gone_past());
  wake_for_undone_savepoint(undone);
  leave_waiting();
}

extern "C" void pulse_transaction_callback(XactEvent event, void*) {
  switch (event) {
    case XACT_EVENT_PRE_PREPARE: check_fences(); break;
    case XACT_EVENT_PRE_COMMIT: before_commit(); break;
    case XACT_EVENT_COMMIT: on_commit(); break;
    case XACT_EVENT_ABORT: on_abort(); break;
    case XACT_EVENT_PREPARE: on_prepare(); break;
    default: break;
  }
}

extern "C" void pulse_subtransaction_callback(SubXactEvent event, SubTransactionId mine,
                                              SubTransactionId parent, void*) {
  if (event == SUBXACT_EVENT_ABORT_SUB) on_savepoint_abort(mine);
  if (event == SUBXACT_EVENT_COMMIT_SUB) hand_up_fences(mine, parent);
}

}  // namespace

void register_transaction_end() {
  RegisterXactCallback(pulse_transaction_callback, nullptr);
  RegisterSubXactCallback(pulse_subtransaction_callback, nullptr);
}

}  // namespace pulse
