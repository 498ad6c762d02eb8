// PostgreSQL array literals, so that one call carries the outcomes of many jobs. Every element is
// quoted or is NULL: a text that a task wrote can never be read as structure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pulse {

// {"a","b\"c",NULL}: for text[] and for every type whose input is text (json[], interval[]).
std::string array_literal(std::span<const std::optional<std::string>> elements);
std::string array_literal(std::span<const std::string> elements);

// {1,2,3}
std::string array_literal(std::span<const std::int64_t> elements);

// {t,f}
std::string array_literal(const std::vector<bool>& elements);

}  // namespace pulse
