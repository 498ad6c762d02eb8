// pulse failures: errors with which jobs ended, and how many jobs each of them ended.
#include <cstdio>

#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

struct FailureSearch {
  JobFilter filter;
  int limit = 20;
};

ExitStatus list_failures(Console& console, const FailureSearch& wanted) {
  Params params = wanted.filter.params();
  params.insert(params.end(), {std::to_string(wanted.limit), std::to_string(kMaxFailures)});
  const QueryResult rows = console.database.query(failure_list().sql, params);
  console.print_list(failure_list().columns, rows);
  if (is_cut(rows)) std::fprintf(stderr, "pulse: %s\n", kFailuresAreCut);
  return ExitStatus::done;
}

}  // namespace

void add_failures(CommandLine& line) {
  auto wanted = std::make_shared<FailureSearch>();
  CLI::App& command =
      line.add("failures", "Errors with which jobs failed, the last first",
               [wanted](Console& console) { return list_failures(console, *wanted); });
  add_filter_options(command, wanted->filter);
  command.add_option("-n,--limit", wanted->limit, "How many errors at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

}  // namespace pulse::console
