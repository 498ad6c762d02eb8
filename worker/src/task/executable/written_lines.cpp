#include "task/executable/written_lines.hpp"

#include <algorithm>
#include <utility>

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

constexpr std::chrono::seconds kSecond{1};
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

LogLevel level_of(std::string_view name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "warning" || name == "warn") return LogLevel::warning;
  return name == "error" ? LogLevel::error : LogLevel::info;
}

}  // namespace

bool LineBudget::has_any(TimePoint now) {
  if (second_began_ == TimePoint{} || now >= second_began_ + kSecond) {
    second_began_ = now;
    left_ = lines_;
  }
  return left_ > 0;
}

void WrittenLines::feed(Stream stream, std::string_view bytes) {
  Pending& pending = pending_.at(stream);
  while (!bytes.empty()) {
    if (!may_tell()) bytes.remove_prefix(leave_out(pending, bytes));
    const std::size_t newline = bytes.find('\n');
    const std::string_view part = bytes.substr(0, newline);
    const std::size_t free_bytes = kMaxLineBytes - pending.line.size();
    pending.line += part.substr(0, free_bytes);
    pending.is_cut = pending.is_cut || part.size() > free_bytes;
    if (newline == std::string_view::npos) return;
    bytes.remove_prefix(newline + 1);
    take_line(stream, std::exchange(pending, {}));
  }
}

bool WrittenLines::may_tell() {
  const TimePoint now = log_.timers.now();
  return budget_.has_any(now) && log_.budget.has_any(now);
}

// Leaves out all whole lines of a flood at once; returns the bytes left out.
std::size_t WrittenLines::leave_out(Pending& pending, std::string_view bytes) {
  const std::size_t last = bytes.rfind('\n');
  if (last == std::string_view::npos) return 0;
  left_out_ +=
      std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(last) + 1, '\n');
  pending = {};
  return last + 1;
}

void WrittenLines::finish() {
  for (const Stream stream : {out, err}) {
    take_line(stream, std::exchange(pending_.at(stream), {}));
  }
  tell_left_out();
}

void WrittenLines::take_line(Stream stream, const Pending& whole) {
  std::string_view line = whole.line;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  if (!may_tell()) {
    ++left_out_;
    return;
  }
  budget_.spend();
  log_.budget.spend();
  tell_left_out();
  std::string text(whole.is_cut ? utf8_prefix(line, kMaxLineBytes - kEllipsis.size()) : line);
  if (whole.is_cut) text += kEllipsis;
  log_.log.info("output", {{"job", writer_.job},
                           {"task", writer_.task},
                           {"program", writer_.program},
                           {"attempt", writer_.attempt},
                           {"stream", stream == out ? "stdout" : "stderr"},
                           {"text", std::move(text)},
                           {"trace_id", writer_.trace_id}});
}

void WrittenLines::tell(std::string_view level, std::string_view text, const Writer& about) {
  if (!may_tell()) {
    ++left_out_;
    return;
  }
  budget_.spend();
  log_.budget.spend();
  tell_left_out();
  std::string told(utf8_prefix(text, kMaxTextBytes - kEllipsis.size()));
  if (told.size() < text.size()) told += kEllipsis;
  log_.log.write(level_of(level), "output",
                 {{"job", about.job},
                  {"task", about.task},
                  {"program", about.program},
                  {"attempt", about.attempt},
                  {"text", std::move(told)}});
}

void WrittenLines::tell_left_out() {
  if (left_out_ == 0) return;
  log_.log.warning("output_left_out", {{"job", writer_.job},
                                       {"task", writer_.task},
                                       {"program", writer_.program},
                                       {"lines", std::exchange(left_out_, 0)}});
}

}  // namespace pulse
