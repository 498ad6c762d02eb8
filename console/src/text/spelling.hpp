// Numbers and times in a form for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pulse::console {

// Seconds in the one or two units that matter: 340 ms, 4.2 s, 3 min 12 s, 2 h 5 min, 12 d 3 h.
std::string spell_seconds(double seconds);
// The value of a column of seconds: such a number, or "?".
std::string spell_known_seconds(const std::string& value);

// 1234567 as 1,234,567.
std::string spell_count(std::string_view digits);

// A timestamp that the server printed in ISO style, to the second: 2026-11-24 23:05:59.
std::string spell_time(std::string_view timestamp);

// The same timestamp in the form of RFC 3339: 2026-11-24T23:05:59.123456+00:00.
std::string rfc3339(std::string_view timestamp);

// "1 job", "3 jobs".
std::string plural(std::int64_t count, std::string_view noun);

// A clause as a sentence of its own: with a capital letter and a full stop.
std::string sentence(std::string clause);

// A progress bar of this many columns, with brackets: [####------].
std::string progress_bar(double part, std::size_t columns);

}  // namespace pulse::console
