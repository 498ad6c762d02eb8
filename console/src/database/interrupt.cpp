#include "database/interrupt.hpp"

#include <csignal>

namespace pulse::console {
namespace {

// Read by the signal's handler; set only where cancel_on_interrupt() was called.
const CancelRequest* volatile under_way = nullptr;
volatile std::sig_atomic_t is_wanted = 0;
volatile std::sig_atomic_t is_cancelled = 0;

// A signal handler may send a request, and may wait for the server for any time. Without a
// statement the program ends, as it does at a second interrupt: by then the signal has its default
// again.
void handle_interrupt(int number) {
  const CancelRequest* const request = under_way;
  if (request == nullptr) {
    std::raise(number);
    return;
  }
  is_cancelled = 1;
  request->send();
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

InterruptCancels::InterruptCancels(const BlockingConnection& connection)
    : request_(is_wanted != 0 ? connection.cancel_request() : nullptr) {
  if (request_) under_way = request_.get();
}

InterruptCancels::~InterruptCancels() {
  if (request_) under_way = nullptr;
}

}  // namespace pulse::console
