#include "claim/demand.hpp"

#include <algorithm>
#include <cmath>

namespace pulse {
namespace {

// The weight of the newest sample: about the last ten count.
constexpr double kNewestWeight = 0.2;

// A claim that takes less than this part of a job costs less than this part of the throughput.
constexpr double kNoise = 0.02;

// Twice the jobs that start in one round trip: the next claim is sent when half is left.
constexpr double kReserve = 2.0;

constexpr std::size_t kMaxPerSlot = 4;

}  // namespace

Demand demand_for(const Slots& slots) {
  const std::size_t all = slots.concurrency + slots.batch_slots + slots.extra;
  const std::size_t ahead = slots.held - std::min(all, slots.held);
  const std::size_t free_slots = all - std::min(all, slots.held);
  const std::size_t target = slots.target;
  Demand demand;
  demand.start_jobs =
      std::min(free_slots, slots.concurrency - std::min(slots.concurrency, slots.in_use));
  demand.max_jobs = free_slots + (target > ahead ? target - ahead : 0);
  demand.is_awaited = demand.start_jobs > 0 || (free_slots > 0 && slots.extra > 0);
  // Without a free slot a claim is worth a round trip only when half of the reserve is used.
  const bool is_low = (free_slots > 0 || ahead * 2 <= target) && !slots.has_no_prefetch;
  return demand.is_awaited || is_low ? demand : Demand{};
}

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

void Patience::claim_took(std::chrono::nanoseconds round_trip, bool is_claim) {
  constexpr int kReserve = 2;
  const auto took = std::chrono::duration_cast<Duration>(round_trip);
  duration_ = std::clamp(took * kReserve, is_claim ? kMin : duration_, kMax);
}

// Each smaller job takes an eighth off: a guess that proves too low costs a release, a guess that
// proves too high costs a round trip.
void ByteBound::take_size(std::size_t bytes) {
  constexpr std::size_t kPart = 8;
  expected_ = std::max({bytes, expected_ - expected_ / kPart, std::size_t{1}});
}

std::size_t ByteBound::free_bytes(std::size_t held_bytes) const {
  return max_bytes_ - std::min(max_bytes_, held_bytes);
}

Demand ByteBound::within(Demand demand, std::size_t held_bytes) const {
  if (is_reached(held_bytes)) return {};
  const std::size_t fitting = std::max(free_bytes(held_bytes) / expected_, std::size_t{1});
  demand.max_jobs = std::min(demand.max_jobs, fitting);
  demand.start_jobs = std::min(demand.start_jobs, demand.max_jobs);
  return demand;
}

}  // namespace pulse
