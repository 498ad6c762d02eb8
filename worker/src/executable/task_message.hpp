// One line of PULSE_FD, read. What lines there are is said in task_output.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "executable/task_output.hpp"

namespace pulse {

struct TaskMessage {
  TaskProgress progress;
  std::optional<std::string> result;   // JSON text
  std::optional<std::string> payload;  // JSON text
};

// Nothing when the line is malformed.
std::optional<TaskMessage> parse_task_message(std::string_view line);

}  // namespace pulse
