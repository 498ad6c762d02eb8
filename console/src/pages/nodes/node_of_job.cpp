// From the id of a job to the job's page at the job's node.
#include "base/http/status.hpp"
#include "base/postgres/sqlstate.hpp"
#include "pages/frame.hpp"
#include "pages/nodes/nodes.hpp"

namespace pulse::console {
namespace {

// A row where the node has the job.
constexpr const char* kHasJob = "SELECT j.state FROM pulse.read_job($1::bigint) AS j";

QueryResult find_job(Database& database, const std::string& id) {
  try {
    return database.query(kHasJob, {id});
  } catch (const Refused& refused) {
    if (refused.error.sqlstate == sqlstate::kNotFound) return {};
    throw;
  }
}

struct Found {
  std::vector<std::string> having;   // nodes that have a job of this id
  std::vector<std::string> unknown;  // nodes that did not answer, and may have such a job
};

Found find_nodes(const Request& request, const AllNodes& nodes, const std::string& id) {
  Found found;
  const auto answers = nodes.ask<QueryResult>(
      request.access, [id](Database& database) { return find_job(database, id); });
  for (const auto& answer : answers) {
    const bool may_have = !answer.is_there() && nodes.shards->may_have(answer.node, id);
    if (may_have) found.unknown.push_back(answer.node);
    if (!answer.value.empty()) found.having.push_back(answer.node);
  }
  return found;
}

Markup choice(const char* lead, const std::vector<std::string>& nodes, const Url& job) {
  if (nodes.empty()) return {};
  Markup links;
  for (const std::string& node : nodes) links += element("li", "", link(job.at_node(node), node));
  return {element("p", "", lead), element("ul", "choice", links)};
}

// One node alone that has the job, or can have the job; its page tells the rest.
std::optional<std::string> only_node(const Found& found) {
  if (found.having.size() + found.unknown.size() != 1) return std::nullopt;
  return found.having.empty() ? found.unknown[0] : found.having[0];
}

Response node_of_job(const Request& request, const AllNodes& nodes) {
  const std::string& id = request.parameter("id");
  const Url job = Url("/jobs").part(id);
  const Found found = find_nodes(request, nodes, id);
  if (const auto node = only_node(found)) return see_other(path_of_node(*node) + job.text());
  if (found.having.empty() && found.unknown.empty()) {
    refuse(http_status::kNotFound, "no node has a job " + id,
           "Completed jobs are deleted unless pulse.keep_completed keeps them.");
  }
  return shown_page(
      request,
      {"Job " + id, "",
       element("div", "question",
               {element("h1", "", "Job " + id),
                choice("These nodes have a job of this id:", found.having, job),
                choice("These nodes do not answer, and may have one:", found.unknown, job)})});
}

}  // namespace

void add_node_of_job(Router& router, const AllNodes& nodes) {
  router.add("GET", "/jobs/{id}", Need::read,
             [nodes](const Request& request) { return node_of_job(request, nodes); });
}

}  // namespace pulse::console
