#include "latencies.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bench {

void Latencies::begin(Moment moment) {
  begin_ = moment;
  milliseconds_.clear();
}

void Latencies::add(Moment due) {
  if (due >= begin_) milliseconds_.push_back(milliseconds(Clock::now() - due));
}

std::string Latencies::json() {
  std::ranges::sort(milliseconds_);
  char text[160];
  std::snprintf(text, sizeof text,
                "{\"count\": %zu, \"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f}",
                milliseconds_.size(), at_most(0.5), at_most(0.99), at_most(0.999), at_most(1));
  return text;
}

// The least that so great a share does not exceed.
double Latencies::at_most(double share) const {
  if (milliseconds_.empty()) return 0;
  auto rank =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(milliseconds_.size())));
  return milliseconds_[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace bench
