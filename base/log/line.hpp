// Log line: the form of one log line, apart from the place of writing.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/log/log.hpp"

namespace pulse {

struct LogStyle {
  LogFormat format = LogFormat::text;
  LogColour colour = LogColour::none;  // of the text format

  LogStyle(LogFormat format, LogColour colour = LogColour::none) : format(format), colour(colour) {}
};

// The line with the final newline. Fields of empty text are left out; the line holds no control
// character but the colours.
std::string log_line(LogStyle style, std::chrono::system_clock::time_point at, LogLevel level,
                     std::string_view event, LogFields fields);

}  // namespace pulse
