// Jobs that meet a filter: all such jobs, and failed jobs, grouped by their errors.
#include <optional>

#include "job/private_fields.hpp"
#include "job/state_counts.hpp"
#include "pages/job_filter_form.hpp"
#include "pages/job_table.hpp"
#include "pages/pages.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

// Columns that would say the same in each row: attempts before the first one, and due times of jobs
// that have ended.
void hide_idle_columns(TableLayout& layout, const QueryResult& rows) {
  bool has_attempt = false;
  bool is_any_live = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    has_attempt = has_attempt || rows[i].optional_integer("attempts").value_or(0) > 0;
    is_any_live = is_any_live || rows[i].is_null("finished_at");
  }
  if (!has_attempt) layout.hidden.emplace_back("attempts");
  if (!is_any_live) layout.hidden.emplace_back("run_at");
}

Due due_of(const Form& query) {
  const std::string& due = query.get("due");
  return due == "now" ? Due::now : due == "later" ? Due::later : Due::any;
}

// The filter of the list of failed jobs.
Form failed_query(const Request& request) {
  Form query = request.query;
  query.add("state", "failed");
  query.add("state", "quarantined");
  return query;
}

// `query`: the filter of the list; the filter of the address may be a part of `query`.
Markup job_list(const Request& request, const Form& query, const JobSearch& search,
                const FoundJobs& found, const Url& here) {
  std::optional<ActionStates> actions;
  if (request.access.is_operator) actions.emplace(request.database());
  const bool has_actions = actions && may_change_chosen(*actions, query);
  Markup list = html_table(kFoundColumns, found.rows, jobs_layout(request, found.rows),
                           spelling_of(request), has_actions);
  if (has_actions && !found.rows.empty()) list = bulk_form(*actions, query, list);
  if (found.is_cut(search)) list += notice("", sentence(clause_of_cut(search)));
  const Url first = with_filter(here, request.query);
  std::optional<Url> next;
  if (found.next) {
    next = first.with("before", *found.next).with("ended", found.next_end.value_or(""));
  }
  return {list, page_links(first, next, !search.before)};
}

Response all_jobs(const Request& request) {
  JobSearch search = jobs_search(request);
  search.before = request.query.find("before");
  const auto counts = count_states(request.database(), search.filter);
  const FoundJobs found = find_jobs(request.database(), search);
  return shown_page(request,
                    {"Jobs",
                     "/jobs",
                     {page_heading("Jobs"), state_tabs(request.query, counts, found.rows.size()),
                      filter_section(request.query, request.access.sees_payloads()),
                      job_list(request, request.query, search, found, Url("/jobs"))}});
}

constexpr int kMaxGroups = 20;
// A page that is opened every few seconds groups so many, and leads to the groups of all.
constexpr int kGroupedAtFirst = 1000;
constexpr const char* kGroup = "group";

// A link to the jobs of the error, or a word that stands for no error.
Markup error_cell(const std::string& line, const Form& query) {
  if (line.empty()) return element("em", "", "no error");
  return link(with_filter(Url("/failed"), query).with("line", line), line);
}

// The actions on the jobs of an error: `query` is the filter of the page.
TableLayout failures_layout(const Form& query) {
  TableLayout layout;
  layout.css = "table failures";
  layout.cell = [query](const Column& column, const QueryResult::Row& group) -> Markup {
    if (column.field == "error_line") return error_cell(group.text("error_line"), query);
    if (column.field != "jobs" || group.text("is_exact") == "t") return {};
    return spell_count(group.text("jobs")) + "+";
  };
  layout.behind = [query](const QueryResult::Row& group) -> Markup {
    const std::string& line = group.text("error_line");
    if (line.empty()) return {};
    Url url = Url("/operations/new").with("action", "retry").with("all", "1").with("line", line);
    for (const char* state : {"failed", "quarantined"}) url = url.with("state", state);
    return button(with_filter(url, query), "Retry all", "small button");
  };
  return layout;
}

Markup whole_grouping(const Request& request) {
  const Url url = with_filter(Url("/failed"), request.query).with(kGroup, "all");
  return element("p", "more", button(url, "Group the last 20,000 failures", "small button"));
}

// `has_jobs`: a job meets the filter, perhaps one that failed too long ago for a first grouping.
// Empty for a reader who sees no errors: a client without a token, or a token whose role may not
// read the jobs, for whom the server makes one group without an error line.
Markup failure_groups(const Request& request, const JobFilter& filter, bool has_jobs) {
  if (!request.access.sees_payloads() || filter.error_line || request.query.find("before")) {
    return {};
  }
  const bool is_whole = request.query.get(kGroup) == "all";
  Params params = filter.params();
  params.insert(params.end(), {std::to_string(kMaxGroups),
                               std::to_string(is_whole ? kMaxFailures : kGroupedAtFirst)});
  const QueryResult rows = request.database().query(failure_list().sql, params);
  if (rows.empty() && has_jobs && !is_whole) return whole_grouping(request);
  if (rows.empty() || rows[0].is_null("error_line")) return {};
  Markup groups = html_table(failure_list().columns, rows, failures_layout(request.query),
                             spelling_of(request), request.access.is_operator);
  if (is_cut(rows)) {
    groups += element("p", "hint", sentence(kFailuresAreCut));
    if (!is_whole) groups += whole_grouping(request);
  }
  return section("By error", groups);
}

Response failed_jobs(const Request& request) {
  JobSearch search = failed_search(request);
  search.before = request.query.find("before");
  search.before_end = request.query.find("ended");
  const FoundJobs found = find_jobs(request.database(), search);
  const Markup groups = failure_groups(request, search.filter, !found.rows.empty());
  const Markup list = job_list(request, failed_query(request), search, found, Url("/failed"));
  return shown_page(
      request, {"Failed jobs",
                "/failed",
                {page_heading("Failed jobs", {}, "The last failure first."),
                 filter_section(request.query, request.access.sees_payloads(), "/failed"), groups,
                 groups.empty() ? list : section("Job by job", list)}});
}

}  // namespace

TableLayout jobs_layout(const Request& request, const QueryResult& rows) {
  TableLayout layout;
  layout.links = {{"id", "/jobs", nullptr, "id"},
                  {"identifier", "/jobs", "task", "identifier"},
                  {"queue_name", "/jobs", "queue", "queue_name"}};
  layout.hidden = {"max_attempts", "crashes", "priority"};
  if (!request.access.sees_payloads()) {
    layout.hidden.insert(layout.hidden.end(), kPrivateFields.begin(), kPrivateFields.end());
  }
  hide_idle_columns(layout, rows);
  layout.css = "table jobs";
  layout.check = "id";
  layout.empty = "No job meets this filter.";
  layout.cell = [](const Column& column, const QueryResult::Row& job) -> Markup {
    if (column.field == "attempts") return {job.text("attempts"), " of ", job.text("max_attempts")};
    // Jobs that are due later are shown as scheduled, so the others of this state wait for a
    // worker.
    if (column.field == "shown_state" && job.text("shown_state") == "ready") return state("due");
    if (column.field != "last_error_line" || job.is_null("last_error_line")) return {};
    return element("span", {{"title", job.text("last_error")}}, job.text("last_error_line"));
  };
  return layout;
}

JobSearch jobs_search(const Request& request) {
  JobSearch search;
  search.filter = filter_of(request.query);
  search.due = due_of(request.query);
  refuse_hidden_errors(request, search.filter);
  return search;
}

JobSearch failed_search(const Request& request) {
  JobSearch search;
  search.filter = filter_of(failed_query(request));
  search.is_by_end = true;
  refuse_hidden_errors(request, search.filter);
  return search;
}

Markup page_links(const Url& first, const std::optional<Url>& next, bool is_first) {
  Markup links;
  if (!is_first) links += button(first, "Newest");
  if (next) links += button(*next, "Older");
  return links.empty() ? links : element("p", "more", links);
}

void add_job_list_pages(Router& router) {
  router.add("GET", "/jobs", Need::read, all_jobs);
  router.add("GET", "/failed", Need::read, failed_jobs);
}

}  // namespace pulse::console
