#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/cluster/node_table.hpp"
#include "base/log/standard_streams.hpp"
#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/each_node.hpp"
#include "command_line/refusals.hpp"
#include "commands/commands.hpp"
#include "database/interrupt.hpp"

namespace pulse::console {
namespace {

// Texts are UTF-8 from end to end, so the widths of characters must be known as such. The language
// stays out of it: in Turkish the small form of I is no i, and names of HTTP headers would differ.
void set_locale() {
  if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
}

void add_commands(CommandLine& line) {
  add_top(line);
  add_overview(line);
  add_jobs(line);
  add_job(line);
  add_failures(line);
  add_add(line);
  add_changes(line);
  add_operations(line);
  add_queues(line);
  add_tasks(line);
  add_workers(line);
  add_schedules(line);
  add_flows(line);
  add_tail(line);
  add_doctor(line);
  add_serve(line);
  add_token(line);
}

using Databases = std::vector<NamedDatabase>;

struct Chosen {
  Databases databases;
  std::optional<Cluster> cluster;
};
using ChosenOrStatus = std::variant<Chosen, ExitStatus>;

ChosenOrStatus choose_listed(const CommonOptions& options) {
  std::vector<DatabaseOption> given;
  for (const std::string& text : options.databases) given.push_back(parse_database(text));
  if (given.empty()) given.emplace_back();
  auto read = read_databases(given, "pulse", ConnectOptions::Server::any);
  if (const auto* problem = std::get_if<std::string>(&read)) {
    return report_usage("--database: " + *problem);
  }
  return Chosen{std::get<Databases>(std::move(read)), std::nullopt};
}

ChosenOrStatus choose_cluster(const std::string& dsn) {
  auto read = read_cluster(dsn, "pulse", ConnectOptions::Server::any);
  if (const auto* problem = std::get_if<std::string>(&read)) {
    return report_usage("--cluster: " + *problem);
  }
  Cluster cluster{std::get<ConnectOptions>(std::move(read))};
  Database database(cluster.given);
  try {
    cluster.nodes = read_nodes(database, cluster.given);
  } catch (const Refused& refused) {
    return tell_refusal_of_node_table(refused.error, database);
  } catch (const Unreachable& unreachable) {
    return report_unreachable(unreachable.what());
  }
  return Chosen{cluster.nodes, cluster};
}

// Returns the databases of the command line, or the status to end with once the user was told why.
ChosenOrStatus choose_databases(const CommonOptions& options) {
  if (!options.cluster) return choose_listed(options);
  if (!options.databases.empty()) return report_usage(kClusterOrDatabases);
  return choose_cluster(*options.cluster);
}

Console console_for(const CommandLine& line, const Chosen& chosen) {
  const Style style = Style::of_stdout([](const char* name) { return std::getenv(name); });
  const Databases& databases = chosen.databases;
  const bool is_one = databases.size() == 1 && !chosen.cluster;
  Console console{line.options(),
                  Database(databases[0].options, is_one ? "" : databases[0].name),
                  {},
                  Output(style, !line.options().has_no_pager && !line.options().is_json),
                  nullptr,
                  chosen.cluster,
                  line.arguments()};
  if (is_one) return console;
  for (const auto& [name, options] : databases) {
    console.nodes.push_back({name, Database(options, name)});
  }
  return console;
}

ExitStatus run_command(const CommandLine& line) {
  const auto chosen = choose_databases(line.options());
  if (const auto* status = std::get_if<ExitStatus>(&chosen)) return *status;
  Console console = console_for(line, std::get<Chosen>(chosen));
  if (!console.nodes.empty() && line.reach() == Reach::one_database) {
    std::fputs("pulse: this command takes one database: give one --database\n", stderr);
    return ExitStatus::usage;
  }
  if (!console.nodes.empty() && line.reach() == Reach::each_node) {
    return run_for_each_node(console, line.chosen());
  }
  console.database.on_notice = [](const SqlError& notice) {
    std::fprintf(stderr, "pulse: %s\n", inert(notice.message).c_str());
  };
  try {
    try {
      return line.chosen()(console);
    } catch (const Refused& refused) {
      return tell_refusal(refused.error, console.database);
    }
  } catch (const Unreachable& unreachable) {
    return report_unreachable(unreachable.what());
  }
}

}  // namespace
}  // namespace pulse::console

int main(int argc, char** argv) {
  using namespace pulse::console;
  pulse::open_standard_streams();
  set_locale();
  cancel_on_interrupt();
  CommandLine line;
  add_commands(line);
  auto status = line.parse(argc, argv);
  if (!status) status = run_command(line);
  // Of an earlier write that failed only the fact is known.
  const bool is_flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (!is_flushed || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "pulse: standard output took not all%s%s\n", is_flushed ? "" : ": ",
                 is_flushed ? "" : std::strerror(error));
    status = ExitStatus::output_lost;
  }
  // Threads of nodes that hang still use objects that an ordinary end destroys.
  if (line.options().databases.size() > 1 || line.options().cluster)
    std::quick_exit(static_cast<int>(*status));
  return static_cast<int>(*status);
}
