// Progress summary: how far a worker is, for an operator at a terminal: ended jobs, counted from
// the log's events, and running jobs, which the loop tells. The log's writer shows the text as a
// status line.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/log/log.hpp"
#include "base/loop/clock.hpp"

namespace pulse {

class ProgressSummary {
 public:
  using Columns = std::function<int()>;  // of the terminal; asked on the log's writing thread

  // Time counts from now. Must outlive the logs that show the summary.
  ProgressSummary(const Clock& clock, Columns columns);
  ProgressSummary(const ProgressSummary&) = delete;
  ProgressSummary& operator=(const ProgressSummary&) = delete;

  // Counts the events of `log`; `log` shows the summary below the lines.
  void show(Log& log);
  // From any thread.
  void publish_running(std::int64_t running) { running_ = running; }
  // One line that leaves the last column free, where some terminals begin a new line.
  std::string text() const;

 private:
  void take_event(std::string_view event);

  const Clock& clock_;
  const Columns columns_;
  const TimePoint start_;
  std::atomic<std::int64_t> done_{0};
  std::atomic<std::int64_t> failed_{0};
  std::atomic<std::int64_t> running_{0};
};

}  // namespace pulse
