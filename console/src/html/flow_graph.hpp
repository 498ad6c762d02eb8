// Jobs that wait for each other, as a picture: each layer holds what comes after the one before.
#pragma once

#include <string>
#include <vector>

#include "html/markup.hpp"

namespace pulse::console {

struct FlowJob {
  std::string id;
  std::string name;  // its key within the flow, or its task
  std::string state;
  std::vector<std::string> parents;  // ids
};

// From left to right: the layer of each job is one more than the highest of its parents'. Parents
// that are not among the jobs count for nothing; a circle ends where it began.
std::vector<std::size_t> layers_of(const std::vector<FlowJob>& jobs);

Markup flow_graph(const std::vector<FlowJob>& jobs);

}  // namespace pulse::console
