// Ctrl-C while the server works cancels the statement there, too. A second Ctrl-C ends the program
// at once.
#pragma once

#include <memory>

#include "base/postgres/blocking_connection.hpp"

namespace pulse::console {

// Installs the handler, once, in a program for a terminal. Other programs leave SIGINT unchanged.
void cancel_on_interrupt();
// Removes the handler, before the program starts threads with sessions or another handler.
void leave_interrupts();

// Whether Ctrl-C has cancelled a statement; a timeout of the server is no interrupt.
bool was_interrupted();

// During its life, Ctrl-C cancels the statement that this connection runs.
class InterruptCancels {
 public:
  explicit InterruptCancels(const BlockingConnection& connection);
  ~InterruptCancels();
  InterruptCancels(const InterruptCancels&) = delete;
  InterruptCancels& operator=(const InterruptCancels&) = delete;

 private:
  const std::unique_ptr<CancelRequest> request_;  // nullptr: Ctrl-C is not this program's to handle
};

}  // namespace pulse::console
