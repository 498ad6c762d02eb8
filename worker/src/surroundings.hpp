// Surroundings: what the process finds at the start, as the command line says: databases, files and
// folders, checked.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/postgres/connection_options.hpp"
#include "config.hpp"
#include "crontab/crontab.hpp"
#include "task/executable/served_folder.hpp"
#include "task/executable/variables.hpp"

namespace pulse {

struct DatabasesToServe {
  std::vector<NamedDatabase> listed;      // none with a cluster
  std::optional<ConnectOptions> cluster;  // whose nodes are served
  std::string of_crontab;                 // the name of the schedules' database
};

struct Surroundings {
  DatabasesToServe databases;
  ServedFolder folder;
  std::string minder_path;
  TaskVariables variables;
  std::string crontab_path;
  std::optional<CrontabItems> crontab;  // absent: no file of schedules
};

// Only before threads are started: libpq's options are read from the environment.
std::variant<Surroundings, EarlyExit> read_surroundings(const Config& config,
                                                        const char* const* environment);

}  // namespace pulse
