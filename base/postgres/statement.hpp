// Statement: an SQL text that the worker sends, with its name in logs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/loop/duration.hpp"

namespace pulse {

struct Statement {
  const char* name;
  const char* sql;
  // Sent again and again: parsed and planned once in a session that is this worker's alone.
  bool is_repeated = false;
};

// Parameters travel as text beside the statement, never inside it. Empty optional: NULL.
using Params = std::vector<std::optional<std::string>>;

// For a parameter of type interval.
inline std::string interval_param(Duration duration) {
  return std::to_string(duration.count()) + " milliseconds";
}

struct Call {
  Statement statement;
  Params params;
  // Of the reply: a later row that exceeds this number of bytes comes without long texts.
  std::optional<std::size_t> max_bytes = std::nullopt;
};

// The calls of one round trip: transactions of one call or several each.
using Calls = std::vector<Call>;
enum class Commit { together, each };

}  // namespace pulse
