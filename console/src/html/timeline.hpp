// The attempts of a job on one axis of time, to scale: when it was due, how long each attempt ran,
// and which ones were taken from their worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "html/markup.hpp"

namespace pulse::console {

struct AttemptSpan {
  std::string number;
  std::string outcome;  // running for the one that has not ended
  std::int64_t claimed_at;
  std::int64_t ended_at;
};

// Times in microseconds; the spans in their order. Nothing without any.
Markup attempt_bars(std::optional<std::int64_t> due_at, const std::vector<AttemptSpan>& spans);

}  // namespace pulse::console
