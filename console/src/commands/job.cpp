// pulse job: everything about one job.
#include <cstdio>

#include "base/postgres/sqlstate.hpp"
#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"
#include "database/interrupt.hpp"
#include "job/job_page.hpp"

namespace pulse::console {
namespace {

void print_job(const Console& console, const JobPage& page) {
  if (console.options.is_json) {
    console.print_json(job_page_json(page));
  } else {
    console.output.print(job_page_text(page, console.output.style()));
  }
}

ExitStatus show_job(Console& console, const std::string& id) {
  print_job(console, read_job_page(console.database, id));
  return ExitStatus::done;
}

struct JobOfNode {
  std::string identity;         // of the database
  std::optional<JobPage> page;  // absent: the node has no such job
};

JobOfNode read_job_of_node(Database& database, const std::string& id) {
  JobOfNode job{database.query(kDatabaseIdentity)[0].text("identity"), {}};
  try {
    job.page = read_job_page(database, id);
    job.page->node = database.name();
  } catch (const Refused& refused) {
    if (refused.error.sqlstate != sqlstate::kNotFound) throw;
  }
  return job;
}

// Unrelated databases give out the same ids.
ExitStatus let_choose(const std::string& id, const std::vector<const JobPage*>& pages) {
  std::string names;
  for (const JobPage* page : pages) names += (names.empty() ? "" : ", ") + page->node;
  std::fprintf(stderr, "pulse: each of these has a job %s: %s; give its --database alone\n",
               id.c_str(), names.c_str());
  return ExitStatus::refused;
}

ExitStatus show_job_of_nodes(Console& console, const std::string& id) {
  leave_interrupts();
  NodeSessions sessions(std::move(console.nodes));
  auto answers =
      sessions.ask<JobOfNode>([id](Database& database) { return read_job_of_node(database, id); });
  refuse_second_names(answers, [](const JobOfNode& job) { return job.identity; });
  std::vector<const JobPage*> pages;
  bool is_complete = true;
  for (const auto& answer : answers) {
    if (answer.is_there() && answer.value.page) pages.push_back(&*answer.value.page);
    if (answer.is_there()) continue;
    is_complete = false;
    std::fprintf(stderr, "pulse: %s %s\n", answer.node.c_str(), inert(answer.trouble).c_str());
  }
  if (pages.size() > 1) return let_choose(id, pages);
  if (pages.size() == 1) print_job(console, *pages[0]);
  if (!is_complete) return ExitStatus::no_database;
  if (pages.size() == 1) return ExitStatus::done;
  std::fprintf(stderr, "pulse: no node has a job %s\n", id.c_str());
  return ExitStatus::refused;
}

}  // namespace

void add_job(CommandLine& line) {
  auto id = std::make_shared<std::string>();
  const auto run = [id](Console& console) {
    return console.nodes.empty() ? show_job(console, *id) : show_job_of_nodes(console, *id);
  };
  line.add("job", "Everything about one job, and why it waits", run, Reach::all_at_once)
      .add_option("ID", *id, "Id of the job")
      ->required()
      ->check(is_id());
}

}  // namespace pulse::console
