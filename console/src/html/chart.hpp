// Charts over time or over durations, as SVG that stretches with its place; scales and names are
// HTML around it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "html/markup.hpp"

namespace pulse::console {

struct Series {
  std::string name;
  const char* css;  // its colour
  std::vector<std::optional<double>> values;
  // Named beside it instead of the last value, where values are no course of time.
  std::string sum = {};
};

struct Chart {
  std::string title;
  std::vector<std::string> moments;  // or durations: as many as each series has values
  std::vector<Series> series;
  std::function<std::string(double)> spell;
  bool is_stacked = false;  // areas on top of each other; else lines
  bool is_whole = false;    // nothing stands between two whole numbers
  bool is_bars = false;     // bars side by side: the values are no course of time
  // When each moment was, as RFC 3339 has it, so that a script can spell it in the reader's zone.
  std::vector<std::string> instants = {};
};

Markup chart(const Chart& chart);

// The top of the scale: a round number that is not below this, whose half is round, too.
double round_up(double highest, bool is_whole = false);

}  // namespace pulse::console
