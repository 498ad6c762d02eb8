#include "output/style.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace pulse::console {
namespace {

const char* sequence_of(Tint tint) {
  switch (tint) {
    case Tint::none: return "";
    case Tint::strong: return "\033[1m";
    case Tint::faint: return "\033[2m";
    case Tint::good: return "\033[32m";
    case Tint::busy: return "\033[36m";
    case Tint::warning: return "\033[33m";
    case Tint::bad: return "\033[31m";
  }
  return "";
}

constexpr std::array<std::pair<std::string_view, Tint>, 32> kTintOfState{{
    {"running", Tint::busy},
    {"completed", Tint::good},
    {"alive", Tint::good},
    {"failed", Tint::bad},
    {"quarantined", Tint::bad},
    {"lost", Tint::bad},
    {"silent", Tint::bad},
    {"cancelled", Tint::warning},
    {"expired", Tint::warning},
    {"paused", Tint::warning},
    {"draining", Tint::warning},
    {"stopping", Tint::warning},
    {"parked", Tint::faint},
    {"stopped", Tint::faint},
    {"stalled", Tint::bad},
    {"timed_out", Tint::bad},
    {"timeout", Tint::bad},
    {"interrupted", Tint::warning},
    {"released", Tint::faint},
    {"snoozed", Tint::faint},
    {"active", Tint::good},
    {"error", Tint::bad},
    {"warning", Tint::warning},
    {"waiting", Tint::faint},
    {"ok", Tint::good},
    {"scheduled", Tint::faint},
    {"answers", Tint::good},
    {"does not answer", Tint::bad},
    {"claims are off", Tint::bad},
    {"no sweep runs", Tint::warning},
    {"cannot be reached", Tint::bad},
    {"a copy: claims are refused", Tint::bad},
}};

}  // namespace

Style Style::of_stdout(const Variable& variable) {
  Style style;
  style.is_terminal = isatty(STDOUT_FILENO) == 1;
  if (!style.is_terminal) return style;
  const auto text_of = [&](const char* name) {
    const char* value = variable(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const std::string_view kind = text_of("TERM");
  style.has_colours = !kind.empty() && kind != "dumb" && text_of("NO_COLOR").empty();
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    style.columns = size.ws_col;
    style.rows = size.ws_row;
  }
  return style;
}

std::string Style::tinted(std::string_view text, Tint tint) const {
  if (!has_colours || tint == Tint::none || text.empty()) return std::string(text);
  return sequence_of(tint) + std::string(text) + "\033[0m";
}

Tint tint_of_state(std::string_view state) {
  for (const auto& [name, tint] : kTintOfState) {
    if (name == state) return tint;
  }
  return Tint::none;
}

}  // namespace pulse::console
