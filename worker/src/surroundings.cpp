#include "surroundings.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/cluster/node_table.hpp"
#include "task/supervised/minder_path.hpp"

namespace pulse {
namespace {

EarlyExit usage(const std::string& problem) { return EarlyExit{ExitCode::usage, problem + "\n"}; }

// A machine without descriptors or memory is no fault of the configuration.
EarlyExit refused(const std::string& option, const std::string& reason, bool is_transient) {
  return {is_transient ? ExitCode::exhausted : ExitCode::configuration,
          option + ": " + reason + "\n"};
}

using ReadDatabases = std::variant<DatabasesToServe, EarlyExit>;

ReadDatabases read_cluster_option(const Config& config, const std::string& application_name) {
  auto cluster = read_cluster(*config.cluster, application_name);
  if (const auto* problem = std::get_if<std::string>(&cluster)) {
    return usage("--cluster: " + *problem);
  }
  return DatabasesToServe{{}, std::get<ConnectOptions>(std::move(cluster)), {}};
}

ReadDatabases read_database_options(const Config& config, const std::string& application_name) {
  auto databases = read_databases(config.databases, application_name);
  if (const auto* problem = std::get_if<std::string>(&databases)) {
    return usage("--database: " + *problem);
  }
  return DatabasesToServe{std::get<0>(std::move(databases)), {}, {}};
}

// Chooses the database that gets the schedules. The nodes of a cluster are not known yet.
std::optional<EarlyExit> choose_for_crontab(const Config& config, DatabasesToServe& databases) {
  const std::vector<NamedDatabase>& listed = databases.listed;
  databases.of_crontab = config.crontab_database;
  if (config.crontab_database.empty()) {
    if (listed.size() == 1) databases.of_crontab = listed[0].name;
    if (config.crontab.empty() || listed.size() == 1) return std::nullopt;
    return usage("--crontab with several databases needs --crontab-database NAME");
  }
  const bool is_there = std::any_of(listed.begin(), listed.end(), [&](const auto& database) {
    return database.name == config.crontab_database;
  });
  if (is_there || databases.cluster) return std::nullopt;
  return usage("--crontab-database: no database is named '" + config.crontab_database + '\'');
}

std::optional<EarlyExit> check_programs(const Config& config) {
  const char* path = getenv("PATH");
  TaskRefusal refusal;
  for (const auto& [commands, option] :
       {std::pair(&config.processes, "--process"), std::pair(&config.programs, "--program")}) {
    for (const ProcessCommand& command : *commands) {
      if (find_program(command.words.front(), path != nullptr ? path : kProgramPath, refusal))
        continue;
      return refused(option, refusal.reason, refusal.is_transient());
    }
  }
  return std::nullopt;
}

}  // namespace

std::variant<Surroundings, EarlyExit> read_surroundings(const Config& config,
                                                        const char* const* environment) {
  const std::string name = "pulse-worker " + config.name;
  auto read =
      config.cluster ? read_cluster_option(config, name) : read_database_options(config, name);
  if (const auto* early = std::get_if<EarlyExit>(&read)) return *early;
  auto& databases = std::get<DatabasesToServe>(read);
  if (auto early = choose_for_crontab(config, databases)) return *early;
  TaskRefusal refusal;
  using Wish = ServedFolder::Wish;
  ServedFolder folder(config.tasks, config.is_folder_wanted ? Wish::named : Wish::usual);
  const bool is_folder_there = folder.check(refusal);
  const bool may_be_missing =
      refusal.kind == TaskRefusal::Kind::not_found && !config.is_folder_wanted;
  if (!is_folder_there && !may_be_missing) {
    return refused("--tasks", refusal.reason, refusal.is_transient());
  }
  TaskVariables variables(config.pass_env, config.env_file, environment);
  if (const auto fault = variables.read_file()) {
    return refused("--env-file", fault->reason, fault->is_transient);
  }
  std::optional<CrontabItems> crontab;
  if (!config.crontab.empty()) {
    auto items = read_crontab(config.crontab);
    if (const auto* fault = std::get_if<FileRefusal>(&items)) {
      return refused("--crontab", fault->reason, fault->is_transient);
    }
    crontab = std::get<CrontabItems>(std::move(items));
  }
  if (auto early = check_programs(config)) return *early;
  std::string minder_path = find_minder();
  if (minder_path.empty()) {
    return EarlyExit{ExitCode::configuration, "pulse-minder is not installed with pulse-worker\n"};
  }
  return Surroundings{std::move(databases), std::move(folder), std::move(minder_path),
                      std::move(variables), config.crontab,    std::move(crontab)};
}

}  // namespace pulse
