// Demand: how many jobs a claim asks for, and how long the claim may take. Pure arithmetic on the
// jobs held and on the durations of the last claims and jobs.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "base/loop/duration.hpp"

namespace pulse {

struct Demand {
  std::size_t start_jobs = 0;
  std::size_t max_jobs = 0;
  bool is_awaited = false;  // if there is no job, the worker waits for the next job
};

struct Slots {
  std::size_t concurrency = 1;  // jobs that can start at once
  // jobs that may lie ready beside `concurrency`, for tasks that take several
  std::size_t batch_slots = 0;
  std::size_t extra = 0;         // jobs beyond one for each slot that could be run now
  std::size_t held = 0;          // jobs without an end
  std::size_t in_use = 0;        // slots that are taken, or that a started job waits for
  std::size_t target = 0;        // jobs to hold ahead
  bool has_no_prefetch = false;  // there is nothing to hold ahead
};

Demand demand_for(const Slots& slots);

// How many jobs to have at hand beyond the free slots, so that a slot need not stand idle for the
// round trip of a claim.
class Prefetch {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // At most `max_ahead` jobs ahead; without `max_ahead`, a few per slot.
  explicit Prefetch(std::optional<int> max_ahead = std::nullopt) : max_ahead_(max_ahead) {}

  void claim_took(Nanoseconds round_trip) { blend(round_trip_, round_trip); }
  void job_took(Nanoseconds duration) { blend(job_duration_, duration); }

  // None until both durations are known, and none while jobs are so long that the wait is noise: no
  // other worker can start a job that this worker holds ahead.
  std::size_t target(std::size_t concurrency) const;

 private:
  static void blend(Nanoseconds& average, Nanoseconds sample);

  std::optional<int> max_ahead_;
  Nanoseconds round_trip_{};    // zero: not known yet
  Nanoseconds job_duration_{};  // zero: not known yet
};

// With the answer to a claim of which nothing moves: more for a server or a network that took long.
class Patience {
 public:
  Duration duration() const { return duration_; }
  // The last answer; the duration of a statement about held jobs (not `is_claim`) says little about
  // claims.
  void claim_took(std::chrono::nanoseconds round_trip, bool is_claim);

 private:
  static constexpr Duration kMin = std::chrono::seconds(10);
  static constexpr Duration kMax = std::chrono::minutes(2);

  Duration duration_ = kMin;
};

// Keeps the bytes of held jobs near a bound. A claim goes out while less than the bound is held,
// and the claim's first job is taken at any size: so at most one job exceeds the bound, and no job
// is too large. The sizes of jobs are known only on arrival; the largest of late jobs says how many
// jobs a claim asks for.
class ByteBound {
 public:
  explicit ByteBound(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void take_size(std::size_t bytes);
  // Asks for one job, and for more again as small jobs arrive.
  void expect_largest() { take_size(max_bytes_); }
  bool is_reached(std::size_t held_bytes) const { return held_bytes >= max_bytes_; }
  std::size_t free_bytes(std::size_t held_bytes) const;
  Demand within(Demand demand, std::size_t held_bytes) const;

 private:
  std::size_t max_bytes_;
  std::size_t expected_ = 1;  // of the next job
};

}  // namespace pulse
