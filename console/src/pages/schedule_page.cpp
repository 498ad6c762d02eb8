// One schedule, with its next runs.
#include "base/http/status.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "serve/problem.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kNextRuns =
    "SELECT pg_catalog.row_number() OVER (ORDER BY due) AS n, due, due AS exactly"
    " FROM pulse.next_runs($1, 20) AS due ORDER BY due";

const Columns kRunColumns{{"", "n", Kind::number}, {"due", "due", Kind::time}, {"at", "exactly"}};

Markup run_cell(const Column& column, const QueryResult::Row& run) {
  return column.field == "exactly" ? exact_time(run.text("exactly")) : Markup();
}

Markup next_runs(const Request& request, const std::string& name, const Spelling& spelling) {
  try {
    const TableLayout layout{{}, {}, {}, "It never runs again.", nullptr, run_cell, "table runs"};
    return html_table(kRunColumns, request.database().query(kNextRuns, {name}), layout, spelling,
                      false);
  } catch (const Refused& refused) {
    return notice("", refused.error.message);
  }
}

Response schedule_page(const Request& request) {
  const std::string& name = request.query.get("name");
  const QueryResult rows = request.database().query(schedule_list().one, {name});
  if (rows.empty()) {
    refuse(http_status::kNotFound, "schedule '" + name + "' is unknown");
  }
  const auto schedule = rows[0];
  const Spelling spelling = spelling_of(request);
  Markup facts;
  for (const Column& column : schedule_list().columns) {
    Markup content = fact(column, schedule.optional_text(column.field), spelling);
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

}  // namespace

void add_schedule_page(Router& router) {
  router.add("GET", "/schedule", Need::read, schedule_page);
}

}  // namespace pulse::console
