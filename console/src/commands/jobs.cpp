// pulse jobs: live and ended jobs that meet the conditions of the user, the newest first.
#include <cstdio>

#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "command_line/node_operations.hpp"
#include "commands/commands.hpp"
#include "database/interrupt.hpp"
#include "job/node_jobs.hpp"
#include "text/id.hpp"

namespace pulse::console {
namespace {

struct WantedJobs {
  JobSearch search;
  std::string before;  // as given: an id or, of several databases, a place of each
};

bool says_next_page(const Console& console) {
  return console.output.style().is_terminal && !console.options.is_json;
}

ExitStatus refuse_before(const std::string& before, const std::string& reason) {
  std::fprintf(stderr, "pulse: --before: '%s' %s\n", inert(before).c_str(), reason.c_str());
  return ExitStatus::usage;
}

ExitStatus list_jobs(Console& console, const WantedJobs& wanted) {
  JobSearch search = wanted.search;
  if (!wanted.before.empty()) {
    if (!is_id_text(wanted.before)) return refuse_before(wanted.before, "is no id");
    search.before = wanted.before;
  }
  const FoundJobs page = find_jobs(console.database, search);
  console.print_list(kFoundColumns, page.rows);
  if (page.is_cut(search)) {
    std::fprintf(stderr, "pulse: %s; --before %s reads further\n", clause_of_cut(search),
                 page.next->c_str());
  } else if (page.next && says_next_page(console)) {
    std::fprintf(stderr, "more: --before %s\n", page.next->c_str());
  }
  return ExitStatus::done;
}

std::string in_words(const std::vector<std::string>& nodes) {
  std::string words;
  for (const std::string& node : nodes) words += (words.empty() ? "" : ", ") + node;
  return words;
}

// Returns what is wrong with the places; empty if nothing is.
std::string fault_of_places(const Console& console, const std::optional<NodePlaces>& places) {
  if (!places) return "is no list of places; of several databases each has one: NAME:ID,…";
  for (const auto& [name, place] : *places) {
    if (!has_node(console, name)) return "is of another --database: none is named " + name;
  }
  return {};
}

ExitStatus list_jobs_of_nodes(Console& console, const WantedJobs& wanted) {
  NodePlaces places;
  if (!wanted.before.empty()) {
    auto given = parse_places(wanted.before);
    const std::string fault = fault_of_places(console, given);
    if (!fault.empty()) return refuse_before(wanted.before, fault);
    places = std::move(*given);
  }
  leave_interrupts();
  NodeSessions sessions(std::move(console.nodes));
  const JobSearch& search = wanted.search;
  const JobsOfNodes page = merge_jobs(sessions.ask<NodeJobs>([search, places](Database& database) {
    return find_jobs_of_node(database, search, places);
  }),
                                      search, places);
  console.print_list(node_job_columns(), page.rows);
  const std::string next = text_of(page.next);
  if (!page.cut.empty()) {
    std::fprintf(stderr, "pulse: of %s %s; --before %s reads further\n", in_words(page.cut).c_str(),
                 clause_of_cut(search), next.c_str());
  } else if (page.has_more && says_next_page(console)) {
    std::fprintf(stderr, "more: --before %s\n", next.c_str());
  }
  return page.is_complete ? ExitStatus::done : ExitStatus::no_database;
}

}  // namespace

void add_jobs(CommandLine& line) {
  auto wanted = std::make_shared<WantedJobs>();
  const auto run = [wanted](Console& console) {
    return console.nodes.empty() ? list_jobs(console, *wanted)
                                 : list_jobs_of_nodes(console, *wanted);
  };
  CLI::App& command =
      line.add("jobs", "Live and ended jobs, the newest first", run, Reach::all_at_once);
  add_filter_options(command, wanted->search.filter);
  command.add_option("-n,--limit", wanted->search.limit, "How many at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--before", wanted->before,
                  "Only jobs with a lower id: the next page, as the page before says")
      ->option_text("ID");
}

}  // namespace pulse::console
