// One flow, as a graph.
#include "base/http/status.hpp"
#include "html/flow_graph.hpp"
#include "job/shown_state.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "serve/problem.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kFlowJobs =
    "SELECT job_id, coalesce(key, identifier, 'completed') AS name, state,"
    " to_json(parents::text[]) AS parents, " PULSE_SHOWN_STATE(
        "state", "run_at") " FROM pulse.flow_jobs($1::bigint, 150)";

Markup graph(const Request& request, const std::string& id) {
  const QueryResult rows = request.database().query(kFlowJobs, {id});
  std::vector<FlowJob> jobs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    jobs.push_back({row.text("job_id"), row.text("name"), row.text("shown_state"),
                    json_strings(row.optional_text("parents"))});
  }
  return element("div",
                 {{"class", "graph"}, {"tabindex", "0"}, {"aria-label", "Graph of the flow"}},
                 flow_graph(jobs));
}

Markup flow_content(const Request& request, const QueryResult::Row& flow) {
  const Spelling spelling = spelling_of(request);
  Markup facts;
  for (const Column& column : flow_list().columns) {
    Markup content = fact(column, flow.optional_text(column.field), spelling);
    if (content.empty() || column.field == "id" || column.field == "name") continue;
    content += plus_of(column, flow);
    facts += element("div", "", {element("dt", "", column.title), element("dd", "", content)});
  }
  Markup content = element("dl", "facts", facts);
  constexpr std::int64_t kShown = 150;
  if (flow.integer("jobs") > kShown) {
    content += notice("", "The first 150 jobs are shown.");
  }
  return {content, graph(request, flow.text("id"))};
}

QueryResult read_flow(const Request& request) {
  QueryResult rows = request.database().query(flow_list().one, {request.parameter("id")});
  if (rows.empty()) {
    refuse(http_status::kNotFound, "flow " + request.parameter("id") + " is unknown",
           "A flow without a live job is forgotten after pulse.keep_attempts.");
  }
  return rows;
}

Response flow_page(const Request& request) {
  const QueryResult rows = read_flow(request);
  const auto flow = rows[0];
  const std::string& id = flow.text("id");
  const bool may_be_live =
      !flow.is_null("jobs_checked") || flow.integer("waiting") + flow.integer("running") > 0;
  Markup actions;
  if (request.access.is_operator && may_be_live) {
    actions = button(Url("/flows/cancel").with("flow", id), "Cancel");
  }
  return shown_page(request,
                    {"Flow " + id,
                     "/flows",
                     {page_heading({"Flow ", id}, actions, flow.optional_text("name").value_or("")),
                      live(Url("/live/flows").part(id), flow_content(request, flow))}});
}

}  // namespace

void add_flow_pages(Router& router) {
  router.add("GET", "/flows/{id}", Need::read, flow_page);
  router.add_stream("/live/flows/{id}", Need::read, kListInterval, [](const Request& request) {
    const QueryResult rows = read_flow(request);
    return flow_content(request, rows[0]).html();
  });
}

}  // namespace pulse::console
