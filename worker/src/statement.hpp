// A statement that the worker sends: its text and the name it has in logs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pulse {

struct Statement {
  const char* name;
  const char* sql;
};

// Parameters travel as text beside the statement, never inside it. Empty optional: NULL.
using Params = std::vector<std::optional<std::string>>;

}  // namespace pulse
