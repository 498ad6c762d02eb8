#include "base/postgres/reconnect.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace pulse {
namespace {

constexpr Duration kFirstBound = std::chrono::milliseconds(100);
constexpr Duration kLongLived = std::chrono::seconds(1);
constexpr int kMaxDoublings = 20;  // beyond every cap, and far from overflow

}  // namespace

Random random_source() {
  const auto engine = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>(0.0, 1.0)(*engine); };
}

Duration Reconnect::next_delay(Duration lived) {
  if (lived >= kLongLived) failures_ = 0;
  const int failures = failures_++;
  if (failures == 0) return Duration::zero();
  const Duration bound = std::min(cap_, kFirstBound * (1 << std::min(failures - 1, kMaxDoublings)));
  return Duration(std::llround(random_() * static_cast<double>(bound.count())));
}

}  // namespace pulse
