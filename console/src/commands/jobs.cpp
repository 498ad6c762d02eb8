// pulse jobs: live and ended jobs that meet the conditions of the user, the newest first.
#include <cstdio>

#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"
#include "job/job_search.hpp"

namespace pulse::console {
namespace {

ExitStatus list_jobs(Console& console, const JobSearch& search) {
  const FoundJobs page = find_jobs(console.database, search);
  console.print_list(kFoundColumns, page.rows);
  if (page.is_cut(search)) {
    std::fprintf(stderr, "pulse: %s; --before %s reads further\n", clause_of_cut(search),
                 page.next->c_str());
  } else if (page.next && console.output.style().is_terminal && !console.options.is_json) {
    std::fprintf(stderr, "more: --before %s\n", page.next->c_str());
  }
  return ExitStatus::done;
}

}  // namespace

void add_jobs(CommandLine& line) {
  auto wanted = std::make_shared<JobSearch>();
  CLI::App& command = line.add("jobs", "Live and ended jobs, the newest first",
                               [wanted](Console& console) { return list_jobs(console, *wanted); });
  add_filter_options(command, wanted->filter);
  command.add_option("-n,--limit", wanted->limit, "How many at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--before", wanted->before, "Only jobs with a lower id: the next page")
      ->check(is_id());
}

}  // namespace pulse::console
