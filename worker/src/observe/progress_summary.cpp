#include "observe/progress_summary.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace pulse {
namespace {

using namespace std::chrono_literals;

// 0:07, 12:34, 1:00:00
std::string elapsed_text(std::chrono::seconds elapsed) {
  const auto hours = static_cast<long>(elapsed / 1h);
  const auto minutes = static_cast<long>(elapsed % 1h / 1min);
  const auto seconds = static_cast<long>((elapsed % 1min).count());
  std::array<char, 64> text{};
  if (hours > 0) {
    std::snprintf(text.data(), text.size(), "%ld:%02ld:%02ld", hours, minutes, seconds);
  } else {
    std::snprintf(text.data(), text.size(), "%ld:%02ld", minutes, seconds);
  }
  return text.data();
}

// Before the first second is over a rate says nothing.
std::string rate_text(std::int64_t ended, std::chrono::nanoseconds elapsed) {
  if (elapsed < 1s) return {};
  const double rate = static_cast<double>(ended) / std::chrono::duration<double>(elapsed).count();
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), rate < 10 ? ", %.1f/s" : ", %.0f/s", rate);
  return text.data();
}

}  // namespace

ProgressSummary::ProgressSummary(const Clock& clock, Columns columns)
    : clock_(clock), columns_(std::move(columns)), start_(clock.now()) {}

void ProgressSummary::show(Log& log) {
  log.listen([this](std::string_view event, Log::Fields) { take_event(event); });
  log.keep_below([this] { return text(); });
}

void ProgressSummary::take_event(std::string_view event) {
  if (event == "completed") ++done_;
  if (event == "failed") ++failed_;
}

std::string ProgressSummary::text() const {
  const std::int64_t done = done_;
  const std::int64_t failed = failed_;
  const auto elapsed = clock_.now() - start_;
  std::string text = "done " + std::to_string(done) + ", failed " + std::to_string(failed) +
                     ", running " + std::to_string(running_) + ", " +
                     elapsed_text(std::chrono::duration_cast<std::chrono::seconds>(elapsed)) +
                     rate_text(done + failed, elapsed);
  const auto width = static_cast<std::size_t>(std::max(0, columns_() - 1));
  if (text.size() > width) text.resize(width);
  return text;
}

}  // namespace pulse
