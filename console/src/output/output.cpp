#include "output/output.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace pulse::console {
namespace {

// Ignores a signal during the life of the object.
class SignalIgnored {
 public:
  explicit SignalIgnored(int number) : number_(number) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(number_, &ignore, &before_);
  }
  ~SignalIgnored() { sigaction(number_, &before_, nullptr); }
  SignalIgnored(const SignalIgnored&) = delete;
  SignalIgnored& operator=(const SignalIgnored&) = delete;

 private:
  const int number_;
  struct sigaction before_ {};
};

// True: a pager ran, and the reader has left it.
bool page(const std::string& text) {
  const char* chosen = std::getenv("PULSE_PAGER");
  if (chosen == nullptr) chosen = std::getenv("PAGER");
  if (chosen == nullptr) chosen = "less";
  if (*chosen == '\0') return false;
  // Colours pass, and a line is cut at the edge instead of wrapped, unless the user set LESS.
  setenv("LESS", "FRSX", /*overwrite=*/0);
  std::fflush(stdout);
  FILE* pager = popen(chosen, "w");
  if (pager == nullptr) return false;
  // The program ignores the signals only now, because a pager inherits ignored signals. The
  // terminal and Ctrl-C belong to the pager until it ends.
  const SignalIgnored pipe(SIGPIPE);
  const SignalIgnored interrupt(SIGINT);
  std::fwrite(text.data(), 1, text.size(), pager);
  const int status = pclose(pager);
  constexpr int kNotFound = 127;
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace

void Output::print(const std::string& text) const {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (style_.is_terminal && may_page_ && style_.rows > 0 && lines >= style_.rows && page(text))
    return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace pulse::console
