#include "html/flow_graph.hpp"

#include <algorithm>
#include <map>

#include "base/text/inert.hpp"
#include "output/style.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

// In units of the picture, which are pixels where the picture has its own size.
constexpr int kNodeWidth = 160;
constexpr int kNodeHeight = 44;
constexpr int kColumn = 212;
constexpr int kRow = 60;
constexpr int kLane = 20;  // the height of an edge on the way through a layer
constexpr int kMargin = 8;

struct Place {
  int x = 0;
  int y = 0;  // of the middle
};

using Numbers = std::map<std::string, std::size_t>;

Numbers numbers_of(const std::vector<FlowJob>& jobs) {
  Numbers numbers;
  for (std::size_t i = 0; i < jobs.size(); ++i) numbers.emplace(jobs[i].id, i);
  return numbers;
}

// The nodes that take a place in a layer: the jobs in their order, then the lanes. An edge that
// passes over layers has a lane in each layer passed, so that the edge runs behind no box; edges of
// one parent share lanes.
struct Graph {
  std::vector<std::size_t> layer;
  std::vector<std::vector<std::size_t>> parents;
  std::size_t jobs = 0;

  bool is_lane(std::size_t number) const { return number >= jobs; }
  int height(std::size_t number) const { return is_lane(number) ? kLane : kRow; }
};

Graph graph_of(const std::vector<FlowJob>& jobs) {
  const Numbers numbers = numbers_of(jobs);
  Graph graph{layers_of(jobs), std::vector<std::vector<std::size_t>>(jobs.size()), jobs.size()};
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> lanes;  // by parent and layer
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const std::string& parent : jobs[i].parents) {
      const auto found = numbers.find(parent);
      if (found == numbers.end()) continue;
      std::size_t from = found->second;
      for (std::size_t at = graph.layer[found->second] + 1; at < graph.layer[i]; ++at) {
        const auto [lane, is_new] = lanes.try_emplace({found->second, at}, graph.layer.size());
        if (is_new) {
          graph.layer.push_back(at);
          graph.parents.push_back({from});
        }
        from = lane->second;
      }
      graph.parents[i].push_back(from);
    }
  }
  return graph;
}

// Within a layer each node stands where its parents stand on average, so that few lines cross.
std::vector<std::vector<std::size_t>> ordered_layers(const Graph& graph) {
  std::vector<std::vector<std::size_t>> layers;
  for (std::size_t i = 0; i < graph.layer.size(); ++i) {
    if (graph.layer[i] >= layers.size()) layers.resize(graph.layer[i] + 1);
    layers[graph.layer[i]].push_back(i);
  }
  std::vector<double> row(graph.layer.size(), 0);
  for (auto& members : layers) {
    std::vector<double> wanted(graph.layer.size(), 0);
    for (const std::size_t member : members) {
      double sum = 0;
      for (const std::size_t parent : graph.parents[member]) sum += row[parent];
      const auto count = static_cast<double>(graph.parents[member].size());
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

int height_of(const Graph& graph, const std::vector<std::size_t>& members) {
  int height = 0;
  for (const std::size_t member : members) height += graph.height(member);
  return height;
}

std::string number(int value) { return std::to_string(value); }

// A line from the right side of one place to the left side of another.
Markup edge(const Place& from, const Place& to) {
  const int x = from.x + kNodeWidth;
  const int middle = (x + to.x) / 2;
  return element("path", {{"class", "edge"},
                          {"d", "M" + number(x) + ' ' + number(from.y) + "C" + number(middle) +
                                    ' ' + number(from.y) + ' ' + number(middle) + ' ' +
                                    number(to.y) + ' ' + number(to.x) + ' ' + number(to.y)}});
}

Markup lane(const Place& place) {
  return element("path",
                 {{"class", "edge"},
                  {"d", "M" + number(place.x) + ' ' + number(place.y) + "h" + number(kNodeWidth)}});
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

Markup node(const FlowJob& job, const Place& middle) {
  constexpr std::size_t kLetters = 18;
  const Place place{middle.x, middle.y - kNodeHeight / 2};
  const auto text = [&](int x, int y, const char* css, const std::string& content) {
    return element("text", {{"class", css}, {"x", number(place.x + x)}, {"y", number(place.y + y)}},
                   content);
  };
  const Markup box = element("rect", {{"x", number(place.x)},
                                      {"y", number(place.y)},
                                      {"width", number(kNodeWidth)},
                                      {"height", number(kNodeHeight)},
                                      {"rx", "6"}});
  const Markup stripe = element("rect", {{"class", "stripe"},
                                         {"x", number(place.x)},
                                         {"y", number(place.y + 6)},
                                         {"width", "3"},
                                         {"height", number(kNodeHeight - 12)},
                                         {"rx", "1.5"}});
  return element("a", {{"href", Url("/jobs").part(job.id)}, {"class", node_css(job.state)}},
                 {element("title", "", job.name + " · " + job.state), box, stripe,
                  text(14, 19, "title", fit(inert(job.name), kLetters)),
                  text(14, 35, "note", job.state + " · " + job.id)});
}

}  // namespace

std::vector<std::size_t> layers_of(const std::vector<FlowJob>& jobs) {
  const Numbers numbers = numbers_of(jobs);
  std::vector<std::size_t> layer(jobs.size(), 0);
  // A layer more per pass; without a circle there are at most as many layers as jobs.
  bool has_changed = true;
  for (std::size_t pass = 0; pass < jobs.size() && has_changed; ++pass) {
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
  const Graph graph = graph_of(jobs);
  const auto layers = ordered_layers(graph);
  int tallest = 0;
  for (const auto& members : layers) tallest = std::max(tallest, height_of(graph, members));
  std::vector<Place> places(graph.layer.size());
  for (std::size_t column = 0; column < layers.size(); ++column) {
    int y = kMargin + (tallest - height_of(graph, layers[column])) / 2;
    for (const std::size_t member : layers[column]) {
      places[member] = {kMargin + static_cast<int>(column) * kColumn, y + graph.height(member) / 2};
      y += graph.height(member);
    }
  }
  Markup edges;
  Markup nodes;
  for (std::size_t i = 0; i < graph.layer.size(); ++i) {
    for (const std::size_t parent : graph.parents[i]) edges += edge(places[parent], places[i]);
    if (graph.is_lane(i)) {
      edges += lane(places[i]);
    } else {
      nodes += node(jobs[i], places[i]);
    }
  }
  constexpr std::size_t kFitting = 6;  // layers that a reader can read where the picture shows all
                                       // layers
  const int width =
      2 * kMargin + kNodeWidth + static_cast<int>(layers.empty() ? 0 : layers.size() - 1) * kColumn;
  const int height = 2 * kMargin + tallest;
  return element("svg",
                 {{"class", layers.size() <= kFitting ? "flow fits" : "flow"},
                  {"width", number(width)},
                  {"height", number(height)},
                  {"viewBox", "0 0 " + number(width) + ' ' + number(height)}},
                 {edges, nodes});
}

}  // namespace pulse::console
