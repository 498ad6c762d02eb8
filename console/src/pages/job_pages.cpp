// Everything about one job.
#include <algorithm>
#include <array>

#include "base/text/inert.hpp"
#include "html/moment.hpp"
#include "html/timeline.hpp"
#include "job/action_states.hpp"
#include "job/job_page.hpp"
#include "job/private_fields.hpp"
#include "pages/frame.hpp"
#include "pages/pages.hpp"
#include "text/laid_out_json.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

Markup job_link(const std::optional<std::string>& id) {
  return id ? link(Url("/jobs").part(*id), *id) : Markup();
}

Markup facts(const QueryResult::Row& job, const Request& request, const Spelling& spelling) {
  constexpr std::array kShownElsewhere{
      "id",       "identifier", "state",  "stage",      "shown_state", "message",     "runs_for",
      "progress", "payload",    "result", "checkpoint", "last_error",  "max_attempts"};
  Markup list;
  for (const Column& column : job_columns()) {
    if (std::find(kShownElsewhere.begin(), kShownElsewhere.end(), column.field) !=
        kShownElsewhere.end()) {
      continue;
    }
    if (is_private(column.field) && !request.access.sees_payloads()) continue;
    Markup content = fact(column, job.optional_text(column.field), spelling);
    if (column.field == "attempts") content = {content, " of ", job.text("max_attempts")};
    if (column.field == "queue_name" && !content.empty()) {
      content = link(Url("/jobs").with("queue", job.text("queue_name")), content);
    }
    if (column.field == "dead_letter_of" || column.field == "dead_letter_id") {
      content = job_link(job.optional_text(column.field));
    }
    if (column.field == "worker_id" && !content.empty()) {
      const std::string& id = job.text("worker_id");
      content = link(Url("/workers").part(id), worker_name(request.database(), id));
    }
    if (content.empty()) continue;
    list += element("div", "", {element("dt", "", column.title), element("dd", "", content)});
  }
  return element("dl", "facts", list);
}

Markup reason_list(const QueryResult& reasons, const Spelling& spelling) {
  Markup list;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const auto reason = reasons[i];
    Markup jobs;
    for (const std::string& id : json_strings(reason.optional_text("job_ids"))) {
      jobs += {" ", job_link(id)};
    }
    list += element(
        "li", "",
        {element("b", "", reason.text("blocker")),
         element("span", "", with_moments(reason.optional_text("detail").value_or(""), spelling)),
         jobs.empty() ? jobs : element("span", "ids", {"jobs", jobs})});
  }
  return reasons.empty() ? Markup() : element("ul", "reasons", list);
}

Markup attempt(const std::string& number, const Markup& outcome, const Markup& when,
               const Markup& took, const Markup& worker, const Markup& more) {
  return element(
      "li", "",
      {element("div", "attempt", {element("span", "number", number), outcome, when, took, worker}),
       more});
}

std::string took(const QueryResult::Row& row, const char* field) {
  if (row.is_null(field)) return {};
  return spell_seconds(row.number(field));
}

Markup worker_of(const QueryResult::Row& row) {
  if (row.is_null("worker_id")) return {};
  const std::string& id = row.text("worker_id");
  return element("span", "worker",
                 {"by ", link(Url("/workers").part(id), row.optional_text("worker").value_or(id))});
}

// The running attempt, with the progress that the worker reports.
Markup running_attempt(const QueryResult::Row& job, const Request& request) {
  if (job.is_null("runs_for")) return {};
  Markup more;
  if (!job.is_null("progress")) {
    more += meter(job.number("progress"));
  }
  for (const char* field : {"stage", "message"}) {
    if (is_private(field) && !request.access.sees_payloads()) continue;
    if (!job.is_null(field)) more += element("span", "note", job.text(field));
  }
  return attempt(job.text("attempts"), state("running"), {},
                 element("span", "", took(job, "runs_for")), {}, element("div", "progress", more));
}

// With a script, a button copies the block.
Markup copied_block(const std::string& text) {
  return element("pre", {{"data-copy", present_if(true)}}, lines(text));
}

Markup attempt_list(const QueryResult& attempts, const Request& request, const Spelling& spelling) {
  Markup list;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const auto row = attempts[i];
    Markup error;
    if (!row.is_null("error") && request.access.sees_payloads()) {
      error = copied_block(row.text("error"));
    }
    list += attempt(row.text("attempt"), state(row.text("outcome")),
                    row.is_null("ended_at") ? Markup() : moment(row.text("ended_at"), spelling),
                    element("span", "", took(row, "ran_for")), worker_of(row), error);
  }
  return list.empty() ? list : element("ol", "timeline", list);
}

Markup text_block(const QueryResult::Row& job, const char* field, const char* title) {
  if (job.is_null(field) || job.text(field) == "null") return {};
  constexpr std::size_t kMaxBytes = 64 * 1024;
  const std::string& text = job.text(field);
  const std::string shown = text.substr(0, kMaxBytes);
  Markup content =
      copied_block(std::string_view(field) == "last_error" ? shown : laid_out_json(shown));
  if (text.size() > kMaxBytes) {
    content += element(
        "p", "hint", {"The first 64 KiB of ", spell_count(std::to_string(text.size())), " bytes."});
  }
  return section(title, content);
}

// The shown attempts, and the running attempt.
Markup attempt_timeline(const JobPage& page, const Spelling& spelling) {
  const auto job = page.job[0];
  std::vector<AttemptSpan> spans;
  const auto add = [&](const std::string& number, const std::string& outcome,
                       const std::optional<std::string>& claimed_at, std::int64_t ended_at) {
    const auto from = microseconds_of(claimed_at.value_or(""));
    if (from) spans.push_back({number, outcome, *from, std::max(*from, ended_at)});
  };
  for (std::size_t i = 0; i < page.attempts.size(); ++i) {
    const auto row = page.attempts[i];
    add(row.text("attempt"), row.text("outcome"), row.optional_text("claimed_at"),
        microseconds_of(row.optional_text("ended_at").value_or("")).value_or(0));
  }
  if (!job.is_null("runs_for")) {
    add(job.text("attempts"), "running", job.optional_text("claimed_at"), spelling.now);
  }
  return attempt_bars(microseconds_of(job.optional_text("run_at").value_or("")), spans);
}

// The parts that change while a visitor reads the page; no payload, because it may be long.
Markup standing(const JobPage& job, const Request& request, const Spelling& spelling) {
  const auto row = job.job[0];
  Markup content = facts(row, request, spelling);
  content += section("Why it is where it is", reason_list(job.reasons, spelling));
  content += section("Running", row.is_null("runs_for")
                                    ? Markup()
                                    : element("ol", "timeline", running_attempt(row, request)));
  content += section("Timeline", attempt_timeline(job, spelling));
  return element("div", {{"class", "standing"}, {"data-state", row.text("shown_state")}}, content);
}

Markup job_actions(Database& database, const std::string& id, const std::string& state) {
  const ActionStates actions(database);
  const auto action = [&](const char* name, const char* title) {
    if (!actions.may_change(name, state)) return Markup();
    return button(Url("/operations/new").with("action", name).with("id", id), title);
  };
  return {action("reschedule", "Reschedule"), action("fail", "Fail"), action("cancel", "Cancel"),
          action("retry", "Retry")};
}

Response job_page(const Request& request) {
  const std::string& id = request.parameter("id");
  const Spelling spelling = spelling_of(request);
  const JobPage job = read_job_page(request.database(), id);
  const auto row = job.job[0];
  const std::string& task = row.text("identifier");
  const Markup title{link(Url("/task").with("name", task), visible(task)), " ",
                     state(row.text("shown_state"))};
  Markup content = page_heading(
      title,
      request.access.is_operator ? job_actions(request.database(), id, row.text("state"))
                                 : Markup(),
      {"Job ", id, " · ", link(Url("/jobs").with("task", task), "all jobs of this task")});
  content += live(Url("/live/jobs").part(id), standing(job, request, spelling));
  content += section("Attempts", attempt_list(job.attempts, request, spelling));
  if (request.access.sees_payloads()) {
    content += text_block(row, "payload", "Payload");
    content += text_block(row, "checkpoint", "Checkpoint");
    content += text_block(row, "result", "Result");
    if (job.attempts.empty()) content += text_block(row, "last_error", "Last error");
  } else {
    content += element("p", "hint", "Payload, result and errors are for those who sign in.");
  }
  return shown_page(request, {task + " · job " + id, "/jobs", content});
}

}  // namespace

void add_job_pages(Router& router) {
  router.add("GET", "/jobs/{id}", Need::read, job_page);
  router.add_stream(
      "/live/jobs/{id}", Need::read, std::chrono::seconds(1), [](const Request& request) {
        const JobPage job = read_job_page(request.database(), request.parameter("id"));
        return standing(job, request, spelling_of(request)).html();
      });
}

}  // namespace pulse::console
