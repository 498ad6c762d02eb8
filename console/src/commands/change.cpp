// pulse retry, cancel, reschedule and fail: one job or many, after a look at which, as an operation
// that is on record and can be taken back.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "command_line/operation.hpp"
#include "commands/commands.hpp"
#include "output/table.hpp"
#include "text/inert.hpp"
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

struct Change {
  const char* action;
  const char* description;
  // Of jobs that are named by id: every state that the action may change.
  std::vector<std::string> states_by_id;
};

struct Wanted {
  std::vector<std::string> ids;
  JobFilter filter;
  bool is_all = false;
  nlohmann::json arguments = nlohmann::json::object();
};

std::string array_text(const std::vector<std::string>& ids) {
  std::string text = "{";
  for (const std::string& id : ids) text += (text.size() > 1 ? "," : "") + id;
  return text + '}';
}

// Which jobs it would be, on standard error: what is printed is the outcome.
void show_sample(Console& console, const QueryResult::Row& preview) {
  const std::vector<std::string> ids = json_strings(preview.text("sample"));
  if (ids.empty() || console.options.is_agreed) return;
  Look look = console.output.look();
  const QueryResult jobs = console.database.query(kSample, {array_text(ids)});
  std::fputs(table(kSampleColumns, jobs, look).c_str(), stderr);
  if (preview.integer("jobs") > static_cast<std::int64_t>(ids.size())) std::fputs("…\n", stderr);
}

ExitStatus change_jobs(Console& console, const Change& change, const Wanted& wanted) {
  if (wanted.ids.empty() && wanted.filter.is_empty() && !wanted.is_all) {
    std::fputs("pulse: which jobs? Name ids, or a filter such as --task; --all means every one\n",
               stderr);
    return ExitStatus::usage;
  }
  JobFilter filter = wanted.filter;
  if (!wanted.ids.empty() && filter.states.empty()) filter.states = change.states_by_id;
  const std::string document = filter_document(filter, wanted.ids);
  const QueryResult preview = console.database.query(kPreview, {change.action, document});
  const std::int64_t jobs = preview[0].integer("jobs");
  const bool is_exact = preview[0].text("is_exact") == "t";
  if (jobs == 0 && is_exact) {
    std::fprintf(stderr, "pulse: no job to %s meets %s\n", change.action, inert(document).c_str());
    return ExitStatus::refused;
  }
  show_sample(console, preview[0]);
  const std::string question =
      std::string(change.action) + (is_exact ? " " : " at least ") + plural(jobs, "job") + "?";
  if (!is_confirmed(console, question)) return ExitStatus::refused;
  const QueryResult started =
      console.database.query(kStart, {change.action, document, wanted.arguments.dump(), actor()});
  return run_operation(console, started[0].text("id"));
}

void add_argument(CLI::App& command, const std::shared_ptr<Wanted>& wanted, const char* option,
                  const char* key, const char* description) {
  command.add_option_function<std::string>(
      option, [wanted, key](const std::string& text) { wanted->arguments[key] = text; },
      description);
}

CLI::App& add_change(CommandLine& line, const Change& change,
                     const std::shared_ptr<Wanted>& wanted) {
  CLI::App& command = line.add(
      change.action, change.description,
      [change, wanted](Console& console) { return change_jobs(console, change, *wanted); });
  command.add_option("ID", wanted->ids, "Ids of jobs")->check(is_id());
  add_filter_options(command, wanted->filter);
  command.add_flag("--all", wanted->is_all, "Every job that the command may change");
  return command;
}

}  // namespace

void add_changes(CommandLine& line) {
  add_change(line,
             {"retry",
              "Run jobs again that ended without completing",
              {"failed", "quarantined", "cancelled", "expired"}},
             std::make_shared<Wanted>());
  auto cancelled = std::make_shared<Wanted>();
  CLI::App& cancel = add_change(
      line,
      {"cancel", "Cancel jobs; running ones are asked to end", {"ready", "parked", "running"}},
      cancelled);
  add_argument(cancel, cancelled, "--reason", "reason", "Kept with the jobs");
  auto failed = std::make_shared<Wanted>();
  CLI::App& fail =
      add_change(line, {"fail", "End waiting jobs as failed", {"ready", "parked"}}, failed);
  add_argument(fail, failed, "--message", "error", "The error that is kept with the jobs");
  auto moved = std::make_shared<Wanted>();
  CLI::App& reschedule =
      add_change(line, {"reschedule", "Change when waiting jobs run", {"ready", "parked"}}, moved);
  add_argument(reschedule, moved, "--at", "run_at", "When they are due, as 2026-12-24 18:00+01");
  add_argument(reschedule, moved, "--priority", "priority", "A lower number is claimed first");
  add_argument(reschedule, moved, "--attempts", "attempts", "Attempts that count as consumed");
  add_argument(reschedule, moved, "--max-attempts", "max_attempts", "Attempts in all");
}

}  // namespace pulse::console
