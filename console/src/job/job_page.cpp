#include "job/job_page.hpp"

#include "base/postgres/sqlstate.hpp"
#include "base/text/inert.hpp"
#include "job/shown_state.hpp"
#include "output/columns.hpp"
#include "output/record.hpp"
#include "text/spelling.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

// The statement reads the row as json, so that the documents of jobs keep each digit.
constexpr const char* kJob =
    "SELECT g.job ->> 'id' AS id, g.state, "
    PULSE_SHOWN_STATE("g.state", "(g.job ->> 'run_at')::timestamptz")
    ", g.job ->> 'identifier' AS identifier,"
    " g.job ->> 'queue_name' AS queue_name, g.job ->> 'priority' AS priority,"
    " g.job ->> 'attempts' AS attempts, g.job ->> 'max_attempts' AS max_attempts,"
    " g.job ->> 'crashes' AS crashes, g.job ->> 'job_key' AS job_key, g.job -> 'flags' AS flags,"
    " (g.job ->> 'created_at')::timestamptz AS created_at, g.job ->> 'added_by' AS added_by,"
    " g.job ->> 'dead_letter_of' AS dead_letter_of, g.job ->> 'dead_letter_id' AS dead_letter_id,"
    " (g.job ->> 'run_at')::timestamptz AS run_at,"
    " (g.job ->> 'scheduled_for')::timestamptz AS scheduled_for,"
    " (g.job ->> 'start_by')::timestamptz AS start_by,"
    " (g.job ->> 'claimed_at')::timestamptz AS claimed_at,"
    " (g.job ->> 'finished_at')::timestamptz AS finished_at,"
    " g.job ->> 'worker_id' AS worker_id,"
    " (g.job ->> 'owner_heartbeat_at')::timestamptz AS owner_heartbeat_at,"
    " (g.job ->> 'cancel_requested_at')::timestamptz AS cancel_requested_at,"
    " g.job ->> 'cancel_reason' AS cancel_reason,"
    " CASE WHEN g.state = 'running' THEN extract(epoch FROM pulse.now()"
    " - (g.job ->> 'claimed_at')::timestamptz) END AS runs_for,"
    " g.job ->> 'traceparent' AS traceparent,"
    " g.job ->> 'stage' AS stage, g.job ->> 'progress' AS progress, g.job ->> 'message' AS message,"
    " g.payload, g.checkpoint, g.result, g.job ->> 'last_error' AS last_error"
    " FROM pulse.read_job($1::bigint) AS g";

const Columns kJobColumns{
    {"job", "id", Kind::id},
    {"task", "identifier"},
    {"", "state", Kind::state},
    {"state", "shown_state", Kind::state},
    {"queue", "queue_name"},
    {"priority", "priority", Kind::number},
    {"attempts", "attempts", Kind::number},
    {"attempts at most", "max_attempts", Kind::number},
    {"crashes", "crashes", Kind::number},
    {"key", "job_key"},
    {"flags", "flags", Kind::names},
    {"added", "created_at", Kind::time},
    {"added by", "added_by"},
    {"dead letter of", "dead_letter_of", Kind::id},
    {"dead letter", "dead_letter_id", Kind::id},
    {"due", "run_at", Kind::time},
    {"scheduled for", "scheduled_for", Kind::time},
    {"start by", "start_by", Kind::time},
    {"claimed", "claimed_at", Kind::time},
    {"ended", "finished_at", Kind::time},
    {"worker", "worker_id", Kind::id},
    {"its last heartbeat", "owner_heartbeat_at", Kind::time},
    {"cancel asked for", "cancel_requested_at", Kind::time},
    {"cancel reason", "cancel_reason"},
    {"traceparent", "traceparent"},
    {"runs for", "runs_for", Kind::seconds},
    {"stage", "stage"},
    {"", "progress", Kind::number},
    {"message", "message"},
    {"", "payload", Kind::json},
    {"", "checkpoint", Kind::json},
    {"", "result", Kind::json},
    {"", "last_error"},
};

constexpr const char* kExplanation =
    "SELECT kind, blocker, detail, until, to_json(job_ids::text[]) AS job_ids,"
    " to_json(worker_ids::text[]) AS worker_ids FROM pulse.explain_job($1::bigint)";

const Columns kExplanationColumns{
    {"kind", "kind"},
    {"reason", "blocker"},
    {"", "detail"},
    {"until", "until", Kind::time},
    {"", "job_ids", Kind::names},
    {"", "worker_ids", Kind::names},
};

constexpr const char* kAttempts =
    "SELECT attempt, worker_id, worker, claimed_at, ended_at,"
    " extract(epoch FROM ended_at - claimed_at) AS ran_for, outcome, error"
    " FROM pulse.job_attempts($1::bigint)";

const Columns kAttemptColumns{
    {"attempt", "attempt", Kind::number},
    {"worker", "worker_id", Kind::id},
    {"", "worker"},
    {"claimed", "claimed_at", Kind::time},
    {"ended", "ended_at", Kind::time},
    {"took", "ran_for", Kind::seconds},
    {"outcome", "outcome", Kind::state},
    {"", "error"},
};

std::string objects(const Columns& columns, const QueryResult& rows) {
  std::string text = "[";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += (i == 0 ? "" : ", ") + json_of(columns, rows[i]);
  }
  return text + "]";
}

// A text that a task wrote, indented; the block keeps its lines, and cuts an endless text.
std::string block(const std::string& text) {
  constexpr std::size_t kMaxBytes = 16 * 1024;
  std::string lines = inert(std::string_view(text).substr(0, kMaxBytes), Lines::kept);
  std::string result = "    ";
  for (const char letter : lines) {
    result += letter;
    if (letter == '\n') result += "    ";
  }
  if (text.size() > kMaxBytes) {
    result += "\n    … " + spell_count(std::to_string(text.size())) + " bytes in all";
  }
  return result + '\n';
}

std::string heading(const Style& style, std::string_view title) {
  return '\n' + style.tinted(title, Tint::strong) + '\n';
}

std::string explanation(const QueryResult& rows, const Style& style) {
  if (rows.empty()) return {};
  std::string text = heading(style, "Why");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += "  " + pad(inert(rows[i].text("blocker")), 10) + "  " +
            inert(rows[i].optional_text("detail").value_or("")) + '\n';
  }
  return text;
}

// A line for each attempt, with a bar for the running attempt.
std::string timeline(const QueryResult::Row& job, const QueryResult& attempts, const Style& style) {
  std::string text;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const auto attempt = attempts[i];
    const std::string outcome = inert(attempt.text("outcome"));
    text += "  " + pad_before(inert(attempt.text("attempt")), 3) + "  " +
            shown(kAttemptColumns, "claimed_at", attempt) + "  " +
            pad_before(shown(kAttemptColumns, "ran_for", attempt), 12) + "  " +
            style.tinted(pad(outcome, 11), tint_of_state(outcome)) + "  " +
            inert(attempt.optional_text("worker").value_or("")) + ' ' +
            style.tinted(inert(attempt.optional_text("worker_id").value_or("")), Tint::faint) +
            '\n';
    if (!attempt.is_null("error")) text += block(attempt.text("error"));
  }
  if (!job.is_null("runs_for")) {
    text += "  " + pad_before(inert(job.text("attempts")), 3) + "  " +
            shown(kJobColumns, "claimed_at", job) + "  " +
            pad_before(shown(kJobColumns, "runs_for", job), 12) + "  " +
            style.tinted(pad("running", 11), Tint::busy) + "  " +
            (job.is_null("progress") ? "" : progress_bar(job.number("progress"), 22)) + '\n';
  }
  return text.empty() ? text : heading(style, "Attempts") + text;
}

std::string document(const QueryResult::Row& job, const char* field, const char* title,
                     const Style& style) {
  if (job.is_null(field) || job.text(field) == "null") return {};
  return heading(style, title) + block(job.text(field));
}

// A standby has no explanation, because it sees neither locks nor sessions of its primary.
QueryResult read_explanation(Database& database, const std::string& id) {
  try {
    return database.query(kExplanation, {id});
  } catch (const Refused& refused) {
    if (refused.error.sqlstate != sqlstate::kReadOnly) throw;
    return {{}, {}};
  }
}

// Stands in line with the facts of the job.
std::string node_line(const std::string& node, const Style& style) {
  if (node.empty()) return {};
  return style.tinted(pad("node", title_width(kJobColumns)), Tint::strong) + "  " + node + '\n';
}

}  // namespace

const Columns& job_columns() { return kJobColumns; }

JobPage read_job_page(Database& database, const std::string& id) {
  return {.job = database.query(kJob, {id}),
          .reasons = read_explanation(database, id),
          .attempts = database.query(kAttempts, {id})};
}

std::string job_page_json(const JobPage& page) {
  const std::string node = page.node.empty() ? "" : "\"node\": \"" + page.node + "\",\n ";
  return '{' + node + "\"job\": " + json_of(kJobColumns, page.job[0]) +
         ",\n \"explanation\": " + objects(kExplanationColumns, page.reasons) +
         ",\n \"attempts\": " + objects(kAttemptColumns, page.attempts) + "}\n";
}

std::string job_page_text(const JobPage& page, const Style& style) {
  const auto job = page.job[0];
  return node_line(page.node, style) + record(kJobColumns, job, style) +
         explanation(page.reasons, style) + timeline(job, page.attempts, style) +
         document(job, "payload", "Payload", style) +
         document(job, "checkpoint", "Checkpoint", style) +
         document(job, "result", "Result", style) +
         (page.attempts.empty() ? document(job, "last_error", "Last error", style) : "");
}

}  // namespace pulse::console
