// Jobs of all nodes that meet a filter, in one list: all such jobs, and failed jobs.
#include <optional>

#include "base/http/status.hpp"
#include "html/moment.hpp"
#include "job/node_jobs.hpp"
#include "job/state_counts.hpp"
#include "pages/job_filter_form.hpp"
#include "pages/job_table.hpp"
#include "pages/nodes/nodes.hpp"
#include "serve/problem.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

// The answer of one node.
struct Part {
  NodeJobs jobs;
  std::vector<StateCount> counts;
  std::string now;
};

struct Whole {
  JobsOfNodes jobs;
  std::vector<StateCount> counts;
  Spelling spelling;  // by the clock of the first node that answers
};

NodePlaces places_of(const Request& request) {
  const auto before = request.query.find("before");
  if (!before) return {};
  auto places = parse_places(*before);
  if (!places) {
    refuse(http_status::kUnprocessableContent, "'" + *before + "' names no place of a node",
           "A page says where the next page begins, as NAME:ID,….");
  }
  return std::move(*places);
}

Whole read_jobs(const Request& request, const AllNodes& nodes, const JobSearch& search,
                bool has_counts) {
  const NodePlaces places = places_of(request);
  auto parts = nodes.ask<Part>(request.access, [=](Database& database) {
    Part part{find_jobs_of_node(database, search, places), {}, {}};
    if (has_counts) part.counts = count_states(database, search.filter);
    part.now = database.query("SELECT pulse.now() AS now")[0].text("now");
    return part;
  });
  refuse_second_names(parts, [](const Part& part) { return part.jobs.identity; });
  Whole whole;
  NodeAnswers<NodeJobs> jobs;
  for (auto& [node, part, trouble] : parts) {
    if (trouble.empty()) {
      add_counts(whole.counts, part.counts);
      if (whole.spelling.now == 0) whole.spelling.now = microseconds_of(part.now).value_or(0);
    }
    jobs.push_back({node, std::move(part.jobs), trouble});
  }
  whole.jobs = merge_jobs(std::move(jobs), search, places);
  return whole;
}

// Jobs lead to pages of their nodes; other links lead to lists of all nodes.
TableLayout layout_of_nodes(const Request& request, const QueryResult& rows) {
  TableLayout layout = jobs_layout(request, rows);
  layout.check = nullptr;
  layout.cell = [of_job = layout.cell](const Column& column,
                                       const QueryResult::Row& job) -> Markup {
    const std::string& node = job.text("node");
    if (column.field == "node") return link(Url("/").at_node(node), node);
    if (!job.is_null("trouble")) {
      return column.field == "trouble" ? element("span", "state bad", job.text("trouble"))
                                       : Markup();
    }
    if (column.field != "id") return of_job(column, job);
    const std::string& id = job.text("id");
    return link(Url("/jobs").part(id).at_node(node), id);
  };
  return layout;
}

Markup merged_list(const Request& request, const Whole& whole, const JobSearch& search,
                   const Url& here) {
  const JobsOfNodes& jobs = whole.jobs;
  Markup list = html_table(node_job_columns(), jobs.rows, layout_of_nodes(request, jobs.rows),
                           whole.spelling, false);
  for (const std::string& node : jobs.cut) {
    list += notice("", {node, ": ", sentence(clause_of_cut(search))});
  }
  const Url first = with_filter(here, request.query);
  std::optional<Url> next;
  if (jobs.has_more) next = first.with("before", text_of(jobs.next));
  return {list, page_links(first, next, !request.query.find("before"))};
}

Response jobs_of_all(const Request& request, const AllNodes& nodes) {
  const JobSearch search = jobs_search(request);
  const Whole whole = read_jobs(request, nodes, search, true);
  return shown_page(request,
                    {"Jobs of all nodes",
                     "/jobs",
                     {page_heading("Jobs of all nodes"), state_tabs(request.query, whole.counts, 0),
                      filter_section(request.query, request.access.sees_payloads()),
                      merged_list(request, whole, search, Url("/jobs"))}});
}

Response failures_of_all(const Request& request, const AllNodes& nodes) {
  const JobSearch search = failed_search(request);
  const Whole whole = read_jobs(request, nodes, search, false);
  return shown_page(request,
                    {"Failed jobs of all nodes",
                     "/failed",
                     {page_heading("Failed jobs of all nodes", {}, "The last failure first."),
                      filter_section(request.query, request.access.sees_payloads(), "/failed"),
                      merged_list(request, whole, search, Url("/failed"))}});
}

}  // namespace

void add_node_job_lists(Router& router, const AllNodes& nodes) {
  router.add("GET", "/jobs", Need::read,
             [nodes](const Request& request) { return jobs_of_all(request, nodes); });
  router.add("GET", "/failed", Need::read,
             [nodes](const Request& request) { return failures_of_all(request, nodes); });
}

}  // namespace pulse::console
