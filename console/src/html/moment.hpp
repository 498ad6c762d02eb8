// Moments as a reader of a page wants them: how long ago, or in how long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pulse::console {

// Microseconds since 1970 of a timestamp as the server prints it in its ISO style; nothing for
// infinity and for what is none.
std::optional<std::int64_t> microseconds_of(std::string_view timestamp);

// "3 min 12 s ago", "in 2 h", "now".
std::string spell_distance(std::int64_t moment, std::int64_t now);

// The same time so many seconds earlier, in its zone and by the clock: 14:05.
std::string clock_before(std::string_view timestamp, std::int64_t seconds);

// Such microseconds as RFC 3339 has them, in UTC.
std::string utc_of(std::int64_t microseconds);

// The time of the day of such a timestamp, in its zone: 14:05, or with seconds.
std::string clock_of(std::string_view timestamp, bool with_seconds = false);

}  // namespace pulse::console
