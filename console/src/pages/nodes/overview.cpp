// The sum of all nodes, and a row of each node.
#include "list/node_overviews.hpp"
#include "pages/list_page.hpp"
#include "pages/nodes/nodes.hpp"
#include "pages/overview/figures.hpp"
#include "pages/pages.hpp"

namespace pulse::console {
namespace {

// One reading of a node costs what the node's own overview costs, and a page is about many nodes.
constexpr std::chrono::seconds kNodesInterval(5);

// A node that tells nothing shows the whole reason.
Markup node_cell(const Column& column, const QueryResult::Row& node) {
  if (column.field == "state") {
    if (!node.is_null("workers_alive")) return state(node.text("state"));
    const QueryResult::Cell& reason = node.optional_text("reason");
    return element("span", "state bad", node.text("state") + (reason ? ": " + *reason : ""));
  }
  if (column.field == "node") {
    const std::string& name = node.text("node");
    return link(Url("/").at_node(name), name);
  }
  return {};
}

Markup overview_of_nodes(const Request& request, const AllNodes& nodes) {
  const QueryResult rows =
      node_overviews(nodes.ask<QueryResult>(request.access, read_node_overview));
  nodes.shards->note(rows);
  const QueryResult sum = sum_of_nodes(rows);
  Markup content;
  if (!sum[0].is_null("workers_alive")) content += overview_figures(sum[0], Links::none);
  const TableLayout layout{{}, {}, {"reason"}, "", nullptr, node_cell};
  return content +=
         section("Nodes", html_table(node_columns(), node_list(rows), layout, {}, false));
}

}  // namespace

void add_nodes_overview(Router& router, const AllNodes& nodes) {
  router.add("GET", "/", Need::read, [nodes](const Request& request) {
    const Markup content = live(Url("/live").part("nodes"), overview_of_nodes(request, nodes));
    return shown_page(request, {"All nodes", "/", {page_heading("All nodes"), content}});
  });
  router.add_stream("/live/nodes", Need::read, kNodesInterval, [nodes](const Request& request) {
    return overview_of_nodes(request, nodes).html();
  });
}

}  // namespace pulse::console
