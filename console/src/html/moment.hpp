// Moments for a reader of a page: how long ago, or in how long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pulse::console {

// Microseconds since 1970 of a timestamp as the server prints it in ISO style; nothing for infinity
// and for a text that is no timestamp.
std::optional<std::int64_t> microseconds_of(std::string_view timestamp);

// "3 min 12 s ago", "in 2 h", "now".
std::string spell_distance(std::int64_t moment, std::int64_t now);

// The time so many seconds before `timestamp`, in the timestamp's zone and by the clock: 14:05.
std::string clock_before(std::string_view timestamp, std::int64_t seconds);

// A moment in microseconds since 1970 as RFC 3339 spells it, in UTC.
std::string utc_of(std::int64_t microseconds);

// The time of the day of a timestamp, in the timestamp's zone: 14:05, or with seconds.
std::string clock_of(std::string_view timestamp, bool with_seconds = false);

}  // namespace pulse::console
