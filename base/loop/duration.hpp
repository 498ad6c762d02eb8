// Durations as people write them on a command line: 500ms, 5s, 1min, 2h, 1d.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace pulse {

using Duration = std::chrono::milliseconds;

// A whole or decimal number with a unit (ms, s, min, h, d). Nothing else is a duration: a bare
// number would leave the reader to guess the unit.
std::optional<Duration> parse_duration(std::string_view text);

// The shortest exact spelling that parse_duration accepts.
std::string to_string(Duration duration);

}  // namespace pulse
