// Histograms of durations with logarithmic buckets: four per octave, from a quarter of a
// millisecond to 37 hours. Tables store the counts of histograms, so the bounds must never change.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kBuckets = 112;
constexpr int64 kBucketUnitUs = 250;

// The first four buckets have a width of one unit each. The last has all longer durations.
inline int histogram_bucket(int64 us) {
  if (us < 0) return 0;
  auto units = static_cast<uint64>(us / kBucketUnitUs);
  if (units < 4) return static_cast<int>(units);
  int octave = 63 - __builtin_clzll(units);
  int bucket = (octave - 1) * 4 + static_cast<int>((units >> (octave - 2)) & 3);
  return Min(bucket, kBuckets - 1);
}

inline int64 bucket_begin_us(int bucket) {
  if (bucket < 4) return bucket * kBucketUnitUs;
  return ((INT64CONST(4) + bucket % 4) << (bucket / 4 - 1)) * kBucketUnitUs;
}

// No duration of a bucket differs by more than an eighth from the bucket's middle, from 1 ms on.
inline int64 bucket_middle_us(int bucket) {
  return (bucket_begin_us(bucket) + bucket_begin_us(bucket + 1)) / 2;
}

}  // namespace pulse
