// How many jobs to have at hand beyond the free slots, so that a slot need not stand idle for the
// round trip of a claim. Pure arithmetic on what was seen lately.
#pragma once

#include <chrono>
#include <optional>

namespace pulse {

class Prefetch {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // At most `most` ahead; without it, a few per slot.
  explicit Prefetch(std::optional<int> max_ahead = std::nullopt) : max_ahead_(max_ahead) {}

  void claim_took(Nanoseconds round_trip) { blend(round_trip_, round_trip); }
  void job_took(Nanoseconds duration) { blend(job_duration_, duration); }

  // None until both are known, and none while jobs are so long that the wait is noise: no other
  // worker can start a job that this one holds ahead.
  std::size_t target(std::size_t concurrency) const;

 private:
  static void blend(Nanoseconds& average, Nanoseconds sample);

  std::optional<int> max_ahead_;
  Nanoseconds round_trip_{};    // zero: not known yet
  Nanoseconds job_duration_{};  // zero: not known yet
};

}  // namespace pulse
