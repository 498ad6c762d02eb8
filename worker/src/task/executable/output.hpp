// Task output: the lines of a task on PULSE_FD: one JSON object per line, at most 1 MB each.
//
//   {"progress": 0.4}          a number from 0 to 1
//   {"message": "text"}        the task's present work; cut at 8 kB
//   {"stage": "text"}          the task's present stage; cut at 128 bytes
//   {"checkpoint": any JSON}   for the next attempt; the newest wins
//   {"result": any JSON}       stored with the completion; the newest wins
//   {"payload": any JSON}      the work left to do, for the next attempt if this attempt fails;
//                              the newest wins, null is nothing
//
// One line may carry several fields; other keys are ignored. A line that is no JSON object, holds a
// value of the wrong kind, nests deeper than 500 levels or is longer than 1 MB is dropped as a
// whole and counted. Empty lines are nothing. Values keep numbers and key order as written.
//
// Pure: no descriptor and no clock. The caller gives times, which never go backwards.

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop/boot_clock.hpp"
#include "jobs/execution_report.hpp"

namespace pulse {

class TaskOutput {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1024} * 1024;

  explicit TaskOutput(std::chrono::milliseconds progress_interval = kProgressInterval)
      : progress_interval_(progress_interval) {}

  // Takes the next bytes, of any length, cut anywhere.
  void feed(std::string_view bytes);
  // End of file: a last line without a newline counts as a line.
  void finish();

  // When the merged progress may be reported; nothing when there is none.
  [[nodiscard]] std::optional<BootClock::time_point> next_report() const noexcept;
  // Hands over the merged progress if a report is due at `now`; starts the next interval.
  std::optional<TaskProgress> take_due(BootClock::time_point now);
  // Hands over the rest of the progress, due or not.
  std::optional<TaskProgress> take_rest();

  [[nodiscard]] const std::optional<std::string>& result() const noexcept { return result_; }
  [[nodiscard]] const std::optional<std::string>& payload() const noexcept { return payload_; }
  [[nodiscard]] std::size_t dropped_lines() const noexcept { return dropped_lines_; }

 private:
  void end_line(std::string_view line);

  std::chrono::milliseconds progress_interval_;
  std::string partial_;       // the line that has begun, never beyond kMaxLineBytes
  bool is_overlong_ = false;  // the line that has begun is being dropped
  TaskProgress pending_;
  BootClock::time_point not_before_{};
  std::optional<std::string> result_;
  std::optional<std::string> payload_;
  std::size_t dropped_lines_ = 0;
};

}  // namespace pulse
