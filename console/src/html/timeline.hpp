// The attempts of a job on one axis of time, to scale: when the job was due, how long each attempt
// ran, and which attempts a sweep took from the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "html/markup.hpp"

namespace pulse::console {

struct AttemptSpan {
  std::string number;
  std::string outcome;  // running for an attempt that has not ended
  std::int64_t claimed_at;
  std::int64_t ended_at;
};

// Times in microseconds; the spans in order. Nothing without any span.
Markup attempt_bars(std::optional<std::int64_t> due_at, const std::vector<AttemptSpan>& spans);

}  // namespace pulse::console
