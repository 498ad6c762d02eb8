#include "base/log/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace pulse {
namespace {

// Of terminals that do not say.
constexpr int kUsualColumns = 80;

std::string text_or_empty(const char* value) { return value == nullptr ? "" : value; }

}  // namespace

Terminal Terminal::detect(int descriptor, const Variable& variable) {
  Terminal terminal;
  terminal.is_there = isatty(descriptor) == 1;
  terminal.kind = text_or_empty(variable("TERM"));
  terminal.no_color = text_or_empty(variable("NO_COLOR"));
  terminal.descriptor = descriptor;
  return terminal;
}

bool Terminal::takes_colour(LogFormat format) const {
  return format == LogFormat::text && knows_sequences() && no_color.empty();
}

bool Terminal::takes_rewriting(LogFormat format) const {
  return format == LogFormat::text && knows_sequences();
}

int Terminal::columns() const {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

}  // namespace pulse
