#include "job/job_change.hpp"

#include <algorithm>
#include <array>

#include "base/postgres/array_literal.hpp"
#include "job/shown_state.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kPreview =
    "SELECT jobs, is_exact, (SELECT coalesce(json_agg(s.id::text), '[]') FROM"
    " unnest(sample_ids[1:10]) AS s (id)) AS sample FROM pulse.preview_operation($1, $2::json)";

constexpr const char* kSample =
    "SELECT i.id, g.state, "
    PULSE_SHOWN_STATE("g.state", "(g.job ->> 'run_at')::timestamptz")
    ", g.job ->> 'identifier' AS identifier,"
    " g.job ->> 'queue_name' AS queue_name, g.job ->> 'attempts' AS attempts,"
    " g.job ->> 'last_error' AS last_error"
    " FROM unnest($1::bigint[]) AS i (id), pulse.read_job(i.id) AS g";

const Columns kSampleColumns{
    {"job", "id", Kind::id},
    {"task", "identifier"},
    {"state", "shown_state", Kind::state},
    {"queue", "queue_name"},
    {"attempts", "attempts", Kind::number},
    {"last error", "last_error", Kind::text, 60},
};

constexpr std::array<std::string_view, 5> kChangesOfJobs{"retry", "cancel", "fail", "reschedule",
                                                         "undo"};

// The states of the jobs, as a reader names states. A change without states is about the states
// that the action usually changes.
std::string kind_of(const JobChange& change) {
  if (change.is_by_id()) return {};
  if (change.filter.states.empty()) return change.action == "retry" ? "failed " : "waiting ";
  std::string kind;
  const std::size_t count = change.filter.states.size();
  for (std::size_t i = 0; i < count; ++i) {
    const char* const before = i == 0 ? "" : i + 1 == count ? " or " : ", ";
    kind += before + change.filter.states[i];
  }
  return kind + ' ';
}

constexpr const char* kStart = "SELECT id FROM pulse.start_operation($1, $2::json, $3::json, $4)";

}  // namespace

bool is_change_of_jobs(std::string_view action) {
  return std::find(kChangesOfJobs.begin(), kChangesOfJobs.end(), action) != kChangesOfJobs.end();
}

std::string JobChange::document() const {
  const bool is_of_filter = says_which() && !is_by_id();
  return filter_document(filter, is_of_filter ? std::nullopt : std::optional(ids));
}

std::string subject(const JobChange& change, const ChangePreview& preview,
                    const std::string& database) {
  const bool is_one = change.ids.size() == 1;
  const char* const all = preview.jobs > 1 && !change.is_by_id() ? "all " : "";
  std::string text = is_one ? "job " + change.ids[0]
                            : (preview.is_exact ? all : "at least ") +
                                  plural(preview.jobs, kind_of(change) + "job");
  text += " of " + database;
  const std::string conditions = change.filter.conditions();
  return conditions.empty() ? text : text + ' ' + conditions;
}

ChangePreview preview_change(Database& database, const JobChange& change) {
  const QueryResult rows = database.query(kPreview, {change.action, change.document()});
  return {rows[0].integer("jobs"), rows[0].text("is_exact") == "t",
          json_strings(rows[0].text("sample"))};
}

const Columns& sample_columns() { return kSampleColumns; }

QueryResult read_sample(Database& database, const ChangePreview& preview) {
  return database.query(kSample, {array_literal(preview.sample_ids)});
}

std::string start_change(Database& database, const JobChange& change, const std::string& arguments,
                         const std::string& actor) {
  return database.query(kStart, {change.action, change.document(), arguments, actor})[0].text("id");
}

}  // namespace pulse::console
