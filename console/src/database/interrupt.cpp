#include "database/interrupt.hpp"

#include <csignal>

namespace pulse::console {
namespace {

// Read by the signal's handler; set only where cancel_on_interrupt() was called.
PGcancel* volatile under_way = nullptr;
volatile std::sig_atomic_t is_wanted = 0;
volatile std::sig_atomic_t is_cancelled = 0;

// PQcancel() is made for handlers of signals, and may wait for the server for any time. Without a
// statement the program ends, as the program does at a second interrupt: by then the signal has its
// default again.
void handle_interrupt(int number) {
  PGcancel* const cancel = under_way;
  if (cancel == nullptr) {
    std::raise(number);
    return;
  }
  is_cancelled = 1;
  char problem[256];
  PQcancel(cancel, problem, sizeof problem);
}

}  // namespace

void cancel_on_interrupt() {
  is_wanted = 1;
  struct sigaction action {};
  action.sa_handler = handle_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool was_interrupted() { return is_cancelled != 0; }

void leave_interrupts() {
  is_wanted = 0;
  std::signal(SIGINT, SIG_DFL);
}

InterruptCancels::InterruptCancels(PGconn* connection) {
  if (is_wanted != 0) under_way = PQgetCancel(connection);
}

InterruptCancels::~InterruptCancels() {
  if (is_wanted == 0) return;
  PGcancel* const ended = under_way;
  under_way = nullptr;
  PQfreeCancel(ended);
}

}  // namespace pulse::console
