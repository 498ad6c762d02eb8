// Durations as people write them.
#include "base/loop/duration.hpp"

#include "target.hpp"

namespace pulse::fuzz {

void duration(std::string_view input) {
  const auto parsed = parse_duration(input);
  if (!parsed) return;
  constexpr std::int64_t kMax = 1'000'000'000'000;
  promise(parsed->count() >= 0 && parsed->count() <= kMax, "a duration is in range");
  promise(parse_duration(to_string(*parsed)) == parsed, "a duration written again is the same");
  promise(input.back() == 's' || input.back() == 'n' || input.back() == 'h', "it has a unit");
}

}  // namespace pulse::fuzz
