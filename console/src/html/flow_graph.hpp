// Jobs that wait for each other, as a picture: each layer holds the jobs that come after the layer
// before.
#pragma once

#include <string>
#include <vector>

#include "html/markup.hpp"

namespace pulse::console {

struct FlowJob {
  std::string id;
  std::string name;  // the key within the flow, or the task
  std::string state;
  std::vector<std::string> parents;  // ids
};

// From left to right: the layer of each job is one more than the highest layer of the job's
// parents. Parents that are not among the jobs count for nothing; a circle ends where it began.
std::vector<std::size_t> layers_of(const std::vector<FlowJob>& jobs);

Markup flow_graph(const std::vector<FlowJob>& jobs);

}  // namespace pulse::console
