// One flow as a graph, one schedule with its next runs, and what the doctor says.
#include "html/flow_graph.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kFlow =
    "SELECT id, name, jobs, nullif(looked_at, jobs) AS looked_at, waiting, running, completed,"
    " failed, cancelled, created_at, last_finished_at"
    " FROM pulse.list_flows(nullif($1::bigint, 9223372036854775807) + 1, 1) WHERE id = $1::bigint";

constexpr const char* kFlowJobs =
    "SELECT job_id, coalesce(key, identifier, 'completed') AS name, state,"
    " to_json(parents::text[]) AS parents FROM pulse.flow_jobs($1::bigint, 150)";

Markup graph(const Request& request, const std::string& id) {
  const QueryResult rows = request.database().query(kFlowJobs, {id});
  std::vector<FlowJob> jobs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    jobs.push_back({row.text("job_id"), row.text("name"), row.text("state"),
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
    const Markup content = value(column, flow.optional_text(column.field), spelling);
    if (content.empty() || column.field == "id" || column.field == "name") continue;
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
  QueryResult rows = request.database().query(kFlow, {request.parameter("id")});
  if (rows.empty()) {
    throw Failed({404, "Not Found", "flow " + request.parameter("id") + " is unknown", "",
                  "A flow without a live job is forgotten after pulse.keep_attempts."});
  }
  return rows;
}

Response flow_page(const Request& request) {
  const QueryResult rows = read_flow(request);
  const auto flow = rows[0];
  const std::string& id = flow.text("id");
  const bool may_be_live =
      !flow.is_null("looked_at") || flow.integer("waiting") + flow.integer("running") > 0;
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

constexpr const char* kSchedule =
    "SELECT name, identifier, rule, time_zone, paused, next_due, last_due, last_job_id,"
    " last_job_state, missed, overlapped, last_error FROM pulse.schedules WHERE name = $1";

constexpr const char* kNextRuns =
    "SELECT pg_catalog.row_number() OVER (ORDER BY due) AS n, due, due AS exactly"
    " FROM pulse.next_runs($1, 20) AS due ORDER BY due";

const Columns kRunColumns{{"", "n", Kind::number}, {"due", "due", Kind::time}, {"at", "exactly"}};

Markup next_runs(const Request& request, const std::string& name, const Spelling& spelling) {
  try {
    return html_table(kRunColumns, request.database().query(kNextRuns, {name}),
                      {{}, {}, {}, "It never runs again."}, spelling, false);
  } catch (const Refused& refused) {
    return notice("", refused.error.message);
  }
}

Response schedule_page(const Request& request) {
  const std::string& name = request.query.get("name");
  const QueryResult rows = request.database().query(kSchedule, {name});
  if (rows.empty()) {
    throw Failed({404, "Not Found", "schedule '" + name + "' is unknown", "", ""});
  }
  const auto schedule = rows[0];
  const Spelling spelling = spelling_of(request);
  Markup facts;
  for (const Column& column : schedule_list().columns) {
    Markup content = value(column, schedule.optional_text(column.field), spelling);
    if (content.empty() || column.field == "name" || column.title.empty()) continue;
    if (column.field == "last_job_id") {
      content = {link(Url("/jobs").part(schedule.text("last_job_id")), content), " ",
                 state(schedule.optional_text("last_job_state").value_or(""))};
    }
    facts += element("div", "", {element("dt", "", column.title), element("dd", "", content)});
  }
  const bool is_paused = schedule.text("paused") == "t";
  Markup actions;
  if (request.access.is_operator) {
    actions = {button(Url("/schedules/run").with("schedule", name), "Run now"),
               is_paused ? button(Url("/schedules/resume").with("schedule", name), "Resume")
                         : button(Url("/schedules/pause").with("schedule", name), "Pause")};
  }
  return shown_page(
      request, {"Schedule " + name,
                "/schedules",
                {page_heading({"Schedule ", name}, actions), element("dl", "facts", facts),
                 element("section", "",
                         {element("h2", "", "Next runs"), next_runs(request, name, spelling)})}});
}

Response doctor_page(const Request& request) {
  const QueryResult rows = request.database().query(finding_list().sql);
  Markup content =
      page_heading("Doctor", {}, "What is wrong with this installation, and what to do.");
  if (rows.empty()) content += notice("good", "Nothing is wrong.");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto finding = rows[i];
    content += element("article", {{"class", "finding " + finding.text("severity")}},
                       {state(finding.text("severity")), element("h2", "", finding.text("finding")),
                        element("p", "", finding.optional_text("detail").value_or("")),
                        element("p", "remedy", finding.optional_text("what_to_do").value_or(""))});
  }
  return shown_page(request, {"Doctor", "/doctor", content});
}

}  // namespace

void add_flow_pages(Router& router) {
  router.add("GET", "/flows/{id}", Need::look, flow_page);
  router.add_stream("/live/flows/{id}", Need::look, std::chrono::seconds(2),
                    [](const Request& request) {
                      const QueryResult rows = read_flow(request);
                      return flow_content(request, rows[0]).html();
                    });
  router.add("GET", "/schedule", Need::look, schedule_page);
  router.add("GET", "/doctor", Need::look, doctor_page);
}

}  // namespace pulse::console
