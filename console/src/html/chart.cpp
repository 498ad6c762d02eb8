#include "html/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace pulse::console {
namespace {

constexpr double kWidth = 600;
constexpr double kHeight = 100;

// Rounds to a tenth, and ignores the locale.
std::string decimal(double number) {
  const long long tenths = std::llround(number * 10);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += '.' + std::to_string(std::llabs(tenths % 10));
  return text;
}

double x_of(std::size_t place, std::size_t places) {
  return places < 2 ? 0 : kWidth * static_cast<double>(place) / static_cast<double>(places - 1);
}

double y_of(double value, double top) {
  return kHeight - kHeight * std::clamp(value / top, 0.0, 1.0);
}

std::string point(std::size_t place, std::size_t places, double value, double top) {
  return decimal(x_of(place, places)) + ' ' + decimal(y_of(value, top));
}

// A line is interrupted where there is no value; a value alone is a short stroke.
std::string line_path(const Series& series, double top) {
  std::string path;
  bool is_drawing = false;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const auto& value = series.values[i];
    if (value) {
      path += (is_drawing ? "L" : "M") + point(i, series.values.size(), *value, top);
      const bool is_alone = !is_drawing && (i + 1 == series.values.size() || !series.values[i + 1]);
      if (is_alone) path += "h2";
    }
    is_drawing = value.has_value();
  }
  return path;
}

std::string area_path(const std::vector<double>& low, const std::vector<double>& high, double top) {
  std::string path;
  for (std::size_t i = 0; i < high.size(); ++i) {
    path += (i == 0 ? "M" : "L") + point(i, high.size(), high[i], top);
  }
  for (std::size_t i = low.size(); i > 0; --i) {
    path += "L" + point(i - 1, low.size(), low[i - 1], top);
  }
  return path.empty() ? path : path + "Z";
}

double highest_of(const Chart& chart) {
  double highest = 0;
  for (std::size_t i = 0; i < chart.moments.size(); ++i) {
    double sum = 0;
    for (const Series& series : chart.series) {
      const double value = i < series.values.size() ? series.values[i].value_or(0) : 0;
      sum = chart.is_stacked ? sum + value : std::max(sum, value);
    }
    highest = std::max(highest, sum);
  }
  return highest;
}

// The bars of a moment stand side by side in four fifths of its place.
std::string bars_path(const Chart& chart, std::size_t number, double top) {
  const auto& values = chart.series[number].values;
  const double place = kWidth / static_cast<double>(std::max<std::size_t>(values.size(), 1));
  const double width = place * 0.8 / static_cast<double>(chart.series.size());
  std::string path;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].value_or(0) <= 0) continue;
    const double left =
        place * (static_cast<double>(i) + 0.1) + width * static_cast<double>(number);
    path += "M" + decimal(left) + " 100V" + decimal(y_of(*values[i], top)) + "h" + decimal(width) +
            "V100Z";
  }
  return path;
}

Markup bars(const Chart& chart, double top) {
  Markup markup;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const std::string css = std::string("area ") + chart.series[i].css;
    markup += element("path", {{"class", css}, {"d", bars_path(chart, i, top)}});
  }
  return markup;
}

Markup shapes(const Chart& chart, double top) {
  if (chart.is_bars) return bars(chart, top);
  Markup markup;
  std::vector<double> below(chart.moments.size(), 0);
  for (const Series& series : chart.series) {
    const std::string css = std::string(chart.is_stacked ? "area " : "line ") + series.css;
    if (!chart.is_stacked) {
      markup += element("path", {{"class", css}, {"d", line_path(series, top)}});
      continue;
    }
    std::vector<double> above = below;
    for (std::size_t i = 0; i < above.size() && i < series.values.size(); ++i) {
      above[i] += series.values[i].value_or(0);
    }
    markup += element("path", {{"class", css}, {"d", area_path(below, above, top)}});
    below = std::move(above);
  }
  return markup;
}

// A strip for each moment, which shows the values of the moment under the pointer.
Markup strips(const Chart& chart) {
  Markup markup;
  const std::size_t places = chart.moments.size();
  const double width = kWidth / static_cast<double>(std::max<std::size_t>(places, 1));
  for (std::size_t i = 0; i < places; ++i) {
    std::string text = chart.moments[i];
    bool has_value = false;
    for (const Series& series : chart.series) {
      if (i >= series.values.size() || !series.values[i]) continue;
      has_value = has_value || *series.values[i] != 0;
      text += " · " + series.name + ' ' + chart.spell(*series.values[i]);
    }
    if (!has_value) continue;
    markup += element(
        "rect",
        {{"class", "strip"},
         {"x", decimal(static_cast<double>(i) * width)},
         {"width", decimal(width)},
         {"height", "100"},
         {"data-at", i < chart.instants.size() ? std::optional<std::string>(chart.instants[i])
                                               : std::nullopt}},
        element("title", "", text));
  }
  return markup;
}

std::string figure_of(const Chart& chart, const Series& series, const char* none) {
  if (!series.sum.empty()) return series.sum;
  for (std::size_t i = series.values.size(); i > 0; --i) {
    if (series.values[i - 1]) return chart.spell(*series.values[i - 1]);
  }
  return none;
}

Markup legend(const Chart& chart) {
  Markup names;
  for (const Series& series : chart.series) {
    names += element("li", {{"class", series.css}},
                     {series.name, " ", element("b", "", figure_of(chart, series, "–"))});
  }
  return element("ul", "legend", names);
}

// The words of a screen reader in place of the picture.
std::string words_of(const Chart& chart) {
  std::string text = chart.title + ':';
  for (const Series& series : chart.series) {
    text += ' ' + series.name + ' ' + figure_of(chart, series, "none") + ',';
  }
  text += " at most " + chart.spell(highest_of(chart));
  return text;
}

// The first moment, one in the middle and the last; each text once.
Markup axis(const Chart& chart) {
  if (chart.moments.empty()) return {};
  Markup moments;
  std::string before;
  for (const std::size_t i : {std::size_t{0}, chart.moments.size() / 2, chart.moments.size() - 1}) {
    const std::string& moment = chart.moments[i];
    const bool has_instant = i < chart.instants.size();
    if (moment != before) {
      moments +=
          has_instant
              ? element("time", {{"class", "clock"}, {"datetime", chart.instants[i]}}, moment)
              : element("span", "", moment);
    }
    before = moment;
  }
  return element("div", {{"class", "axis"}, {"aria-hidden", "true"}}, moments);
}

}  // namespace

double round_up(double highest, bool is_whole) {
  if (!(highest > 0) || !std::isfinite(highest)) return is_whole ? 2 : 1;
  if (is_whole && highest <= 10) return 2 * std::ceil(highest / 2);
  const double power = std::pow(10, std::floor(std::log10(highest)));
  constexpr std::array<double, 11> kSteps{1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10};
  for (const double step : kSteps) {
    if (step * power >= highest * (1 - 1e-9)) return step * power;
  }
  return 10 * power;
}

Markup chart(const Chart& chart) {
  const double top = round_up(highest_of(chart), chart.is_whole);
  const bool is_empty = highest_of(chart) <= 0;
  const Markup plot =
      element("svg",
              {{"viewBox", "0 0 600 100"},
               {"preserveAspectRatio", "none"},
               {"role", "img"},
               {"aria-label", words_of(chart)}},
              {element("path", {{"class", "grid"}, {"d", "M0 0H600M0 50H600"}}), shapes(chart, top),
               element("path", {{"class", "base"}, {"d", "M0 100H600"}}), strips(chart)});
  const Markup scale = element("div", {{"class", "scale"}, {"aria-hidden", "true"}},
                               {element("span", "", is_empty ? "" : chart.spell(top)),
                                element("span", "", is_empty ? "" : chart.spell(top / 2)),
                                element("span", "", chart.spell(0))});
  return element("figure", "chart",
                 {element("figcaption", "", {element("h3", "", chart.title), legend(chart)}), scale,
                  plot, is_empty ? element("p", "nothing", "no job yet") : Markup(), axis(chart)});
}

}  // namespace pulse::console
