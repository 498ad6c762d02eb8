#include "text/spelling.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace pulse::console {
namespace {

std::string with_unit(long long number, const char* unit) {
  return std::to_string(number) + ' ' + unit;
}

std::string two_units(long long seconds, long long large, const char* unit, long long small,
                      const char* small_unit) {
  std::string text = with_unit(seconds / large, unit);
  const long long rest = seconds % large / small;
  return rest == 0 ? text : text + ' ' + with_unit(rest, small_unit);
}

constexpr long long kMinute = 60;
constexpr long long kHour = 60 * kMinute;
constexpr long long kDay = 24 * kHour;

}  // namespace

std::string spell_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "for ever";
  if (seconds < 0) return '-' + spell_seconds(-seconds);
  if (seconds < 0.9995) return with_unit(std::llround(seconds * 1000), "ms");
  if (seconds < 9.95) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f s", seconds);
    return text;
  }
  constexpr double kEndless = 1e15;
  const long long whole = std::llround(std::fmin(seconds, kEndless));
  if (whole < kMinute) return with_unit(whole, "s");
  if (whole < kHour) return two_units(whole, kMinute, "min", 1, "s");
  if (whole < kDay) return two_units(whole, kHour, "h", kMinute, "min");
  return two_units(whole, kDay, "d", kHour, "h");
}

std::string spell_known_seconds(const std::string& value) {
  return value == "?" ? value : spell_seconds(std::strtod(value.c_str(), nullptr));
}

std::string spell_count(std::string_view digits) {
  if (digits.ends_with('+')) return spell_count(digits.substr(0, digits.size() - 1)) + '+';
  std::string text;
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string spell_time(std::string_view timestamp) {
  constexpr std::size_t kToTheSecond = 19;  // of years with four digits
  constexpr std::size_t kSecondColon = 16;
  if (timestamp.size() < kToTheSecond || timestamp[kSecondColon] != ':') {
    return std::string(timestamp);
  }
  return std::string(timestamp.substr(0, kToTheSecond));
}

std::string rfc3339(std::string_view timestamp) {
  std::string text(timestamp);
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return text;  // infinity
  text[space] = 'T';
  const std::size_t zone = text.find_last_of("+-");
  constexpr std::size_t kHoursOnly = 3;
  if (zone > space && text.size() - zone == kHoursOnly) text += ":00";
  return text;
}

std::string plural(std::int64_t count, std::string_view noun) {
  return spell_count(std::to_string(count)) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::string sentence(std::string clause) {
  if (clause.empty()) return clause;
  clause[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(clause[0])));
  return clause + '.';
}

std::string progress_bar(double part, std::size_t columns) {
  const std::size_t inner = columns < 3 ? 1 : columns - 2;
  const double bounded = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0;
  const auto filled = static_cast<std::size_t>(std::floor(bounded * static_cast<double>(inner)));
  return '[' + std::string(filled, '#') + std::string(inner - filled, '-') + ']';
}

}  // namespace pulse::console
