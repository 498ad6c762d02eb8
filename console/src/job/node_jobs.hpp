// Jobs of several databases, the nodes, as one list, page by page: the newest first, or the last
// end first. Within a node the order is the node's own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "database/node_answer.hpp"
#include "job/job_search.hpp"

namespace pulse::console {

// Where the jobs of a node go on: below this id and, of a search by ends, before this end.
struct NodePlace {
  std::string id;
  std::optional<std::string> end = std::nullopt;

  // The place behind the last job of a node.
  static NodePlace behind_all() { return {"0"}; }
  bool is_behind_all() const { return id == "0"; }
};
// Of each node by NAME. A node without a place begins with its first job.
using NodePlaces = std::map<std::string, NodePlace>;

// "eu:17,us:0", and of a search by ends "eu:17@2026-12-24 18:00:00+00".
std::string text_of(const NodePlaces& places);
std::optional<NodePlaces> parse_places(std::string_view text);

struct NodeJobs {
  std::string identity;  // of the database
  FoundJobs found;
};

// Reads one page of one node. The places of the search itself count for nothing.
NodeJobs find_jobs_of_node(Database& database, JobSearch search, const NodePlaces& places);

struct JobsOfNodes {
  QueryResult rows;  // the nodes with trouble, then as many jobs as the search wants
  NodePlaces next;
  bool has_more = false;         // whether `next` leads to further jobs
  bool is_complete = true;       // whether no node has trouble
  std::vector<std::string> cut;  // nodes that stopped before they had read all jobs
};

// Merges a page of each node. A node that stopped early holds up no other node, so its next page
// may have newer jobs. A node with trouble keeps its place.
JobsOfNodes merge_jobs(NodeAnswers<NodeJobs> answers, const JobSearch& search,
                       const NodePlaces& places);

// `node`, `trouble`, and kFoundColumns.
const Columns& node_job_columns();

}  // namespace pulse::console
