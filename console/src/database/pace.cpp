#include "database/pace.hpp"

#include <algorithm>
#include <utility>

namespace pulse::console {

std::chrono::milliseconds Pace::pause_after(std::chrono::microseconds worked) {
  constexpr int kShare = 200;
  constexpr std::chrono::milliseconds kMaxPause(5000);
  if (!std::exchange(has_queried_, true)) return interval_;
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(worked * kShare);
  return std::max(interval_, std::min(pause, kMaxPause));
}

}  // namespace pulse::console
