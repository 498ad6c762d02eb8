// How many jobs the sessions of a drain may still claim, all together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace bench {

class Portion {
 public:
  explicit Portion(std::int64_t jobs = std::numeric_limits<std::int64_t>::max()) : left_(jobs) {}

  // So many at most, 0 when none is left.
  int take(int most) {
    std::int64_t left = left_.fetch_sub(most);
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, most));
  }

 private:
  std::atomic<std::int64_t> left_;
};

}  // namespace bench
