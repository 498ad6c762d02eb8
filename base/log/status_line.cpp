#include "base/log/status_line.hpp"

namespace pulse {
namespace {

// To the first column; erase from there to the end.
constexpr std::string_view kErase = "\r\x1b[K";

}  // namespace

std::string StatusLine::write(std::string_view lines, std::string text) {
  if (lines.empty() && text == shown_) return {};
  std::string written;
  if (!shown_.empty()) written += kErase;
  written += lines;
  written += text;
  shown_ = std::move(text);
  return written;
}

}  // namespace pulse
