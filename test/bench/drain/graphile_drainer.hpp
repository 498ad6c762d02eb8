// The statements that Graphile Worker 0.18.0 sends, from this client: they are pipelined as ours
// are, so that what is left between the two is the design of the tables.
#pragma once

#include <string>

#include "drainer.hpp"
#include "session.hpp"

namespace bench {

class GraphileDrainer {
 public:
  GraphileDrainer(const std::string& name, const DrainOptions& options);
  Drained run();

 private:
  Ids next_claim(const Ids& done);

  Session session_;
  std::string pool_;
  std::string task_ids_;
  std::string claim_;
  std::string complete_;
  Drained total_;
};

}  // namespace bench
