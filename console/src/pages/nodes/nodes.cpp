#include "pages/nodes/nodes.hpp"

#include "pages/pages.hpp"

namespace pulse::console {

void add_nodes_pages(Router& router, std::size_t count, const AskNodes& ask) {
  add_assets(router);
  add_error_pages(router);
  const AllNodes nodes{count, ask};
  add_nodes_overview(router, nodes);
  add_node_job_lists(router, nodes);
  add_node_of_job(router, nodes);
}

}  // namespace pulse::console
