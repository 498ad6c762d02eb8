#include "html/flow_graph.hpp"

#include <algorithm>
#include <map>

#include "output/look.hpp"
#include "text/inert.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

// In units of the picture, which are pixels where it has its own size.
constexpr int kNodeWidth = 160;
constexpr int kNodeHeight = 44;
constexpr int kColumn = 212;
constexpr int kRow = 60;
constexpr int kMargin = 8;

struct Place {
  int x = 0;
  int y = 0;
};

using Numbers = std::map<std::string, std::size_t>;

Numbers numbers_of(const std::vector<FlowJob>& jobs) {
  Numbers numbers;
  for (std::size_t i = 0; i < jobs.size(); ++i) numbers.emplace(jobs[i].id, i);
  return numbers;
}

// Within a layer jobs stand where their parents stand on average, so that few lines cross.
std::vector<std::vector<std::size_t>> ordered_layers(const std::vector<FlowJob>& jobs,
                                                     const Numbers& numbers) {
  const std::vector<std::size_t> layer = layers_of(jobs);
  std::vector<std::vector<std::size_t>> layers;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (layer[i] >= layers.size()) layers.resize(layer[i] + 1);
    layers[layer[i]].push_back(i);
  }
  std::vector<double> row(jobs.size(), 0);
  for (auto& members : layers) {
    std::vector<double> wanted(jobs.size(), 0);
    for (const std::size_t member : members) {
      double sum = 0;
      double count = 0;
      for (const std::string& parent : jobs[member].parents) {
        const auto found = numbers.find(parent);
        if (found == numbers.end()) continue;
        sum += row[found->second];
        ++count;
      }
      wanted[member] = count > 0 ? sum / count : 0;
    }
    std::stable_sort(members.begin(), members.end(),
                     [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
    const double first = -static_cast<double>(members.size()) / 2;
    for (std::size_t i = 0; i < members.size(); ++i) {
      row[members[i]] = first + static_cast<double>(i);
    }
  }
  return layers;
}

std::string number(int value) { return std::to_string(value); }

Markup edge(const Place& from, const Place& to) {
  const int x1 = from.x + kNodeWidth;
  const int y1 = from.y + kNodeHeight / 2;
  const int y2 = to.y + kNodeHeight / 2;
  const int middle = (x1 + to.x) / 2;
  return element("path", {{"class", "edge"},
                          {"d", "M" + number(x1) + ' ' + number(y1) + "C" + number(middle) + ' ' +
                                    number(y1) + ' ' + number(middle) + ' ' + number(y2) + ' ' +
                                    number(to.x) + ' ' + number(y2)}});
}

std::string node_css(const std::string& state) {
  switch (tint_of_state(state)) {
    case Tint::good: return "node good";
    case Tint::busy: return "node busy";
    case Tint::warning: return "node warning";
    case Tint::bad: return "node bad";
    default: return "node";
  }
}

Markup node(const FlowJob& job, const Place& place) {
  constexpr std::size_t kLetters = 18;
  const auto text = [&](int x, int y, const char* css, const std::string& content) {
    return element("text", {{"class", css}, {"x", number(place.x + x)}, {"y", number(place.y + y)}},
                   content);
  };
  const Markup box = element("rect", {{"x", number(place.x)},
                                      {"y", number(place.y)},
                                      {"width", number(kNodeWidth)},
                                      {"height", number(kNodeHeight)},
                                      {"rx", "6"}});
  const Markup edge_mark = element("rect", {{"class", "mark"},
                                            {"x", number(place.x)},
                                            {"y", number(place.y + 6)},
                                            {"width", "3"},
                                            {"height", number(kNodeHeight - 12)},
                                            {"rx", "1.5"}});
  return element("a", {{"href", Url("/jobs").part(job.id)}, {"class", node_css(job.state)}},
                 {element("title", "", job.name + " · " + job.state), box, edge_mark,
                  text(14, 19, "title", fit(inert(job.name), kLetters)),
                  text(14, 35, "note", job.state + " · " + job.id)});
}

}  // namespace

std::vector<std::size_t> layers_of(const std::vector<FlowJob>& jobs) {
  const Numbers numbers = numbers_of(jobs);
  std::vector<std::size_t> layer(jobs.size(), 0);
  // A layer more per round; without a circle there are at most as many layers as jobs.
  bool has_changed = true;
  for (std::size_t round = 0; round < jobs.size() && has_changed; ++round) {
    has_changed = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (const std::string& parent : jobs[i].parents) {
        const auto found = numbers.find(parent);
        if (found == numbers.end() || found->second == i) continue;
        const std::size_t after = layer[found->second] + 1;
        if (after <= layer[i] || after >= jobs.size()) continue;
        layer[i] = after;
        has_changed = true;
      }
    }
  }
  return layer;
}

Markup flow_graph(const std::vector<FlowJob>& jobs) {
  const Numbers numbers = numbers_of(jobs);
  const auto layers = ordered_layers(jobs, numbers);
  std::size_t tallest = 0;
  for (const auto& members : layers) tallest = std::max(tallest, members.size());
  std::vector<Place> places(jobs.size());
  for (std::size_t column = 0; column < layers.size(); ++column) {
    const int space = static_cast<int>(tallest - layers[column].size()) * kRow / 2;
    for (std::size_t i = 0; i < layers[column].size(); ++i) {
      places[layers[column][i]] = {kMargin + static_cast<int>(column) * kColumn,
                                   kMargin + space + static_cast<int>(i) * kRow};
    }
  }
  Markup edges;
  Markup nodes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const std::string& parent : jobs[i].parents) {
      const auto found = numbers.find(parent);
      if (found != numbers.end()) edges += edge(places[found->second], places[i]);
    }
    nodes += node(jobs[i], places[i]);
  }
  constexpr std::size_t kFitting = 6;  // layers that can be read where all of them are shown
  const int width =
      2 * kMargin + kNodeWidth + static_cast<int>(layers.empty() ? 0 : layers.size() - 1) * kColumn;
  const int height = 2 * kMargin + static_cast<int>(tallest) * kRow - (kRow - kNodeHeight);
  return element("svg",
                 {{"class", layers.size() <= kFitting ? "flow fits" : "flow"},
                  {"width", number(width)},
                  {"height", number(height)},
                  {"viewBox", "0 0 " + number(width) + ' ' + number(height)}},
                 {edges, nodes});
}

}  // namespace pulse::console
