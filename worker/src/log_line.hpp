// How one log line looks, apart from where it goes.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "log.hpp"

namespace pulse {

// The line with its final newline. Fields of empty text are left out.
std::string log_line(LogFormat format, std::chrono::system_clock::time_point at, LogLevel level,
                     std::string_view event, std::initializer_list<LogField> fields);

}  // namespace pulse
