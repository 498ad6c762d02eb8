#include "job/job_change.hpp"

#include "database/array_literal.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kPreview =
    "SELECT jobs, is_exact, (SELECT coalesce(json_agg(s.id::text), '[]') FROM"
    " unnest(sample_ids[1:10]) AS s (id)) AS sample FROM pulse.preview_operation($1, $2::json)";

constexpr const char* kSample =
    "SELECT i.id, g.state, g.job ->> 'identifier' AS identifier,"
    " g.job ->> 'queue_name' AS queue_name, g.job ->> 'attempts' AS attempts,"
    " g.job ->> 'last_error' AS last_error"
    " FROM unnest($1::bigint[]) AS i (id), pulse.read_job(i.id) AS g";

const Columns kSampleColumns{
    {"job", "id", Kind::id},
    {"task", "identifier"},
    {"state", "state", Kind::state},
    {"queue", "queue_name"},
    {"attempts", "attempts", Kind::number},
    {"last error", "last_error", Kind::text, 60},
};

constexpr const char* kStart = "SELECT id FROM pulse.start_operation($1, $2::json, $3::json, $4)";

}  // namespace

std::string ChangePreview::question(const std::string& action) const {
  return action + (is_exact ? " " : " at least ") + plural(jobs, "job") + '?';
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
