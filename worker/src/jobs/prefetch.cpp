#include "jobs/prefetch.hpp"

#include <algorithm>
#include <cmath>

namespace pulse {
namespace {

// The weight of the newest sample: about the last ten count.
constexpr double kNewestWeight = 0.2;

// A claim that takes less than this part of a job costs less than this part of the throughput.
constexpr double kNoise = 0.02;

// Twice what is used in one round trip: the next claim is sent when half is left.
constexpr double kReserve = 2.0;

constexpr std::size_t kMaxPerSlot = 4;

}  // namespace

std::size_t Prefetch::target(std::size_t concurrency) const {
  if (round_trip_ <= Nanoseconds::zero() || job_duration_ <= Nanoseconds::zero()) return 0;
  const double jobs_per_round_trip =
      static_cast<double>(round_trip_.count()) / static_cast<double>(job_duration_.count());
  if (jobs_per_round_trip < kNoise) return 0;
  const double wanted =
      std::ceil(jobs_per_round_trip * kReserve * static_cast<double>(concurrency));
  const auto most = max_ahead_ ? static_cast<std::size_t>(*max_ahead_) : kMaxPerSlot * concurrency;
  return static_cast<std::size_t>(std::min(wanted, static_cast<double>(most)));
}

void Prefetch::blend(Nanoseconds& average, Nanoseconds sample) {
  sample = std::max(sample, Nanoseconds(1));
  if (average == Nanoseconds::zero()) {
    average = sample;
    return;
  }
  average +=
      Nanoseconds(std::llround(kNewestWeight * static_cast<double>((sample - average).count())));
}

}  // namespace pulse
