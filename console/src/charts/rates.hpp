// The outcomes of attempts minute by minute, and how long the attempts took: of one task, of one
// queue, or of all tasks together.
#pragma once

#include <optional>
#include <string>

#include "database/database.hpp"
#include "html/chart.hpp"

namespace pulse::console {

struct RateCharts {
  Chart ended;
  Chart wait;
  Chart run;
};

// Of the minutes of the last hour that are over; nothing where the server does not count.
std::optional<RateCharts> rate_charts(Database& database,
                                      const std::optional<std::string>& task = std::nullopt,
                                      const std::optional<std::string>& queue = std::nullopt);

// How many attempts of the last hour waited and ran for how long; nothing where none has started.
std::optional<Chart> latency_chart(Database& database,
                                   const std::optional<std::string>& task = std::nullopt,
                                   const std::optional<std::string>& queue = std::nullopt);

}  // namespace pulse::console
