// Task message: one line of PULSE_FD, read. output.hpp lists the kinds of lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "task/executable/output.hpp"

namespace pulse {

struct TaskMessage {
  TaskProgress progress;
  std::optional<std::string> result;   // JSON text
  std::optional<std::string> payload;  // JSON text
};

// Nothing when the line is malformed.
std::optional<TaskMessage> parse_task_message(std::string_view line);

}  // namespace pulse
