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
  const char* css;  // class of the series' colour
  std::vector<std::optional<double>> values;
  // Named beside the series instead of the last value, where values are no course of time.
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
  // The time of each moment, as RFC 3339 spells times, so that a script can spell it in the
  // reader's zone.
  std::vector<std::string> instants = {};
};

Markup chart(const Chart& chart);

// The top of the scale: a round number not below `highest`, whose half is a round number, too.
double round_up(double highest, bool is_whole = false);

}  // namespace pulse::console
