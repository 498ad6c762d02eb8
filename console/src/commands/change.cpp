// pulse retry, cancel, reschedule and fail: change one job or many, after a preview of the jobs, as
// an operation that is on record and can be taken back.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "command_line/operation.hpp"
#include "commands/change_nodes.hpp"
#include "commands/commands.hpp"
#include "job/job_change.hpp"
#include "output/table.hpp"

namespace pulse::console {
namespace {

struct WantedChange {
  JobChange change;
  nlohmann::json arguments = nlohmann::json::object();
};

// Shows the jobs that the operation would change, on standard error: standard output has the
// outcome.
void show_sample(Console& console, const ChangePreview& preview) {
  if (preview.sample_ids.empty() || console.options.is_agreed) return;
  const QueryResult jobs = read_sample(console.database, preview);
  std::fputs(table(sample_columns(), jobs, console.output.style()).c_str(), stderr);
  if (preview.jobs > static_cast<std::int64_t>(preview.sample_ids.size()))
    std::fputs("…\n", stderr);
}

ExitStatus change_jobs(Console& console, const WantedChange& wanted) {
  const JobChange& change = wanted.change;
  if (!change.says_which()) {
    std::fputs("pulse: which jobs? Name ids, or a filter such as --task; --all means every one\n",
               stderr);
    return ExitStatus::usage;
  }
  if (!console.nodes.empty()) {
    return change_jobs_of_nodes(console, change, wanted.arguments.dump());
  }
  const ChangePreview preview = preview_change(console.database, change);
  if (preview.is_of_none()) {
    std::fprintf(stderr, "pulse: no job to %s meets %s\n", change.action.c_str(),
                 inert(change.document()).c_str());
    return ExitStatus::refused;
  }
  show_sample(console, preview);
  const std::string asked = subject(change, preview, console.database.name());
  if (!is_confirmed(console, change.action + ' ' + inert(asked) + '?')) return ExitStatus::refused;
  return run_operation(console,
                       start_change(console.database, change, wanted.arguments.dump(), actor()));
}

void add_argument(CLI::App& command, const std::shared_ptr<WantedChange>& wanted,
                  const char* option, const char* key, const char* description) {
  command.add_option_function<std::string>(
      option, [wanted, key](const std::string& text) { wanted->arguments[key] = text; },
      description);
}

CLI::App& add_change(CommandLine& line, const char* action, const char* description,
                     const std::shared_ptr<WantedChange>& wanted) {
  wanted->change.action = action;
  const auto run = [wanted](Console& console) { return change_jobs(console, *wanted); };
  CLI::App& command = line.add(action, description, run, Reach::all_at_once);
  command.add_option("ID", wanted->change.ids, "Ids of jobs")->check(is_id());
  add_filter_options(command, wanted->change.filter);
  command.add_flag("--all", wanted->change.is_all, "Every job that the command may change");
  return command;
}

}  // namespace

void add_changes(CommandLine& line) {
  add_change(line, "retry", "Run jobs again that ended without completing",
             std::make_shared<WantedChange>());
  auto cancelled = std::make_shared<WantedChange>();
  CLI::App& cancel =
      add_change(line, "cancel", "Cancel jobs; running ones are asked to end", cancelled);
  add_argument(cancel, cancelled, "--reason", "reason", "Kept with the jobs");
  auto failed = std::make_shared<WantedChange>();
  CLI::App& fail = add_change(line, "fail", "End waiting jobs as failed", failed);
  add_argument(fail, failed, "--message", "error", "The error that is kept with the jobs");
  auto moved = std::make_shared<WantedChange>();
  CLI::App& reschedule = add_change(line, "reschedule", "Change when waiting jobs run", moved);
  add_argument(reschedule, moved, "--at", "run_at", "When they are due, as 2026-12-24 18:00+01");
  add_argument(reschedule, moved, "--priority", "priority", "A lower number is claimed first");
  add_argument(reschedule, moved, "--attempts", "attempts", "Attempts that count as consumed");
  add_argument(reschedule, moved, "--max-attempts", "max_attempts", "Attempts in all");
}

}  // namespace pulse::console
