#include "task/executable/output.hpp"

#include <algorithm>
#include <utility>

#include "task/executable/message.hpp"

namespace pulse {

void TaskOutput::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const bool is_whole = newline != std::string_view::npos;
    const std::string_view part = bytes.substr(0, newline);
    bytes.remove_prefix(is_whole ? newline + 1 : bytes.size());

    if (partial_.size() + part.size() > kMaxLineBytes) {
      is_overlong_ = true;
      partial_ = std::string();
    }
    if (is_overlong_) {
      if (is_whole) {
        ++dropped_lines_;
        is_overlong_ = false;
      }
    } else if (!is_whole) {
      partial_ += part;
    } else if (partial_.empty()) {
      end_line(part);
    } else {
      partial_ += part;
      end_line(std::exchange(partial_, {}));
    }
  }
}

void TaskOutput::finish() {
  if (is_overlong_) ++dropped_lines_;
  is_overlong_ = false;
  end_line(std::exchange(partial_, {}));
}

void TaskOutput::end_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  std::optional<TaskMessage> message = parse_task_message(line);
  if (!message) {
    ++dropped_lines_;
    return;
  }
  pending_.take_newer(std::move(message->progress));
  if (message->result) result_ = std::move(message->result);
  if (message->payload) payload_ = std::move(message->payload);
}

std::optional<BootClock::time_point> TaskOutput::next_report() const noexcept {
  if (pending_.empty()) return std::nullopt;
  return not_before_;
}

std::optional<TaskProgress> TaskOutput::take_due(BootClock::time_point now) {
  if (pending_.empty() || now < not_before_) return std::nullopt;
  not_before_ = now + progress_interval_;
  return take_rest();
}

std::optional<TaskProgress> TaskOutput::take_rest() {
  if (pending_.empty()) return std::nullopt;
  return std::exchange(pending_, {});
}

}  // namespace pulse
