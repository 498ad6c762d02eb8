#include "base/loop/duration.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace pulse {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};

// Largest first, so that to_string finds the shortest spelling.
constexpr std::array<Unit, 5> kUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"min", 60'000}, {"s", 1'000}, {"ms", 1}}};

// Longer than any setting of the server takes, and far from overflow in sums.
constexpr double kMaxMilliseconds = 1e12;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (name != unit.name) continue;
    const double milliseconds = number * static_cast<double>(unit.milliseconds);
    if (milliseconds > kMaxMilliseconds) return std::nullopt;
    return Duration(std::llround(milliseconds));
  }
  return std::nullopt;
}

std::string to_string(Duration duration) {
  if (duration.count() == 0) return "0s";
  const Unit* unit = kUnits.data();
  while (duration.count() % unit->milliseconds != 0) ++unit;
  return std::to_string(duration.count() / unit->milliseconds) + std::string(unit->name);
}

}  // namespace pulse
