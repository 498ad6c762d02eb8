#include "html/moment.hpp"

#include <array>
#include <cstdio>
#include <ctime>

#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

// "+05:30", "-03", "Z" and "" in seconds.
std::int64_t offset_of(std::string_view zone) {
  if (zone.size() < 3) return 0;
  const std::string text(zone);
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  std::sscanf(text.c_str() + 1, "%2d:%2d:%2d", &hours, &minutes, &seconds);
  const std::int64_t offset = hours * 3600 + minutes * 60 + seconds;
  return zone[0] == '-' ? -offset : offset;
}

}  // namespace

std::optional<std::int64_t> microseconds_of(std::string_view timestamp) {
  const std::string text(timestamp);
  std::tm time{};
  int length = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d%*1[ T]%d:%d:%d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &length) != 6) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  std::string_view rest = std::string_view(text).substr(static_cast<std::size_t>(length));
  std::int64_t fraction = 0;
  if (rest.starts_with('.')) {
    std::int64_t unit = kSecond;
    rest.remove_prefix(1);
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      unit /= 10;
      fraction += (rest[0] - '0') * unit;
      rest.remove_prefix(1);
    }
  }
  if (rest.ends_with("BC")) return std::nullopt;
  return (static_cast<std::int64_t>(timegm(&time)) - offset_of(rest)) * kSecond + fraction;
}

std::string spell_distance(std::int64_t moment, std::int64_t now) {
  const std::int64_t distance = moment - now;
  if (std::llabs(distance) < kSecond) return "now";
  // A reader of a page needs one unit, and of the small units whole numbers.
  double seconds = static_cast<double>(std::llabs(distance)) / static_cast<double>(kSecond);
  constexpr std::array<double, 4> kUnits{86400, 3600, 60, 1};
  for (const double unit : kUnits) {
    if (seconds < unit) continue;
    seconds = static_cast<double>(static_cast<std::int64_t>(seconds / unit)) * unit;
    break;
  }
  // Ten or more whole seconds have no decimals.
  std::string text =
      seconds < 10 ? std::to_string(static_cast<int>(seconds)) + " s" : spell_seconds(seconds);
  return distance < 0 ? text + " ago" : "in " + text;
}

std::string utc_of(std::int64_t microseconds) {
  std::time_t seconds = static_cast<std::time_t>(microseconds / kSecond);
  std::tm time{};
  gmtime_r(&seconds, &time);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &time);
  return {text.data(), length};
}

std::string clock_before(std::string_view timestamp, std::int64_t seconds) {
  constexpr std::int64_t kDay = 86'400;
  int hour = 0;
  int minute = 0;
  int second = 0;
  const std::string clock = clock_of(timestamp, true);
  if (std::sscanf(clock.c_str(), "%2d:%2d:%2d", &hour, &minute, &second) != 3) return {};
  const std::int64_t at = ((hour * 60 + minute) * 60 + second - seconds % kDay + kDay) % kDay;
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%02d:%02d", static_cast<int>(at / 3600 % 24),
                static_cast<int>(at / 60 % 60));
  return text.data();
}

std::string clock_of(std::string_view timestamp, bool with_seconds) {
  constexpr std::size_t kClock = 11;
  if (timestamp.size() < kClock + 8) return std::string(timestamp);
  return std::string(timestamp.substr(kClock, with_seconds ? 8 : 5));
}

}  // namespace pulse::console
