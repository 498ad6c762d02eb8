#include "database/pace.hpp"

#include <algorithm>

namespace pulse::console {

std::chrono::milliseconds pause_after(std::chrono::microseconds worked,
                                      std::chrono::milliseconds interval) {
  constexpr int kShare = 200;
  constexpr std::chrono::milliseconds kMaxPause(5000);
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(worked * kShare);
  return std::max(interval, std::min(pause, kMaxPause));
}

}  // namespace pulse::console
