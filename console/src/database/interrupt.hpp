// Ctrl-C while the server works: the statement is cancelled there, too. A second one waits for
// nothing.
#pragma once

#include <libpq-fe.h>

namespace pulse::console {

// Once, in a program that is used by hand; elsewhere a SIGINT stays what it is.
void cancel_on_interrupt();
// No more: before threads are started that have sessions of their own, or another handler is.
void leave_interrupts();

// Whether a statement was cancelled so; a timeout of the server is no interrupt.
bool was_interrupted();

// While it stands, an interrupt cancels what this connection runs.
class InterruptCancels {
 public:
  explicit InterruptCancels(PGconn* connection);
  ~InterruptCancels();
  InterruptCancels(const InterruptCancels&) = delete;
  InterruptCancels& operator=(const InterruptCancels&) = delete;
};

}  // namespace pulse::console
