// The command line as one checked struct.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/http/address.hpp"
#include "base/log/log.hpp"
#include "base/loop/duration.hpp"
#include "base/postgres/connection_options.hpp"
#include "liveness/exit_code.hpp"
#include "task/executable/environment.hpp"
#include "task/executable/written_lines.hpp"
#include "task/process/command.hpp"

namespace pulse {

// Each slot may be a process with pipes, or a thread; more than this is a mistake, not a wish.
constexpr int kMaxSlots = 10'000;

// A worker that dies takes all jobs held ahead along into a recovery.
constexpr int kMaxAhead = 10'000;

struct Config {
  std::vector<DatabaseOption> databases{{}};
  std::optional<std::string> cluster;  // a DSN: the nodes of a cluster, in place of `databases`
  bool is_one_of_many = false;         // the Worker shares the process with others
  std::string database_name;  // of the one database that a Worker is for; empty: without a name
  std::string tasks = "tasks";
  std::vector<ProcessCommand> processes;
  std::vector<ProcessCommand> programs;            // `task` is the name of the program in the log
  int program_copies = 1;                          // processes of each program
  Duration start_limit = std::chrono::minutes(1);  // until the hello of a program
  std::optional<Duration> replace_grace;  // of the jobs of a replaced process; absent: no limit
  ProgramVariables program_env = ProgramVariables::all;
  bool is_concurrency_given = false;  // then programs share the slots
  bool is_folder_wanted = false;      // --tasks was given: the folder must be there
  int concurrency = 1;
  int batch_slots = 0;  // jobs beyond `concurrency` that tasks may take together with other jobs
  bool once = false;
  bool may_gain_privileges = false;  // tasks, by sudo and the like
  std::string name;
  // How many jobs may be held ahead; absent: a few per slot. `tasks_queue`: the queues of tasks
  // take jobs held ahead as well.
  std::optional<int> prefetch;
  bool tasks_queue = false;
  std::size_t max_held_bytes = std::size_t{256} << 20U;  // of payloads of held jobs
  Duration grace = std::chrono::seconds(25);
  std::optional<Duration> heartbeat_interval;  // absent: the server's setting
  std::optional<HttpAddress> http;             // absent: no status pages
  std::vector<std::string> http_names;         // of the status pages, besides the address
  TaskOutputUse task_output = TaskOutputUse::log;
  std::vector<std::string> pass_env;  // names of variables that tasks get from this process
  std::string env_file;               // of more variables for tasks; empty: none
  std::string crontab;                // a file of schedules; empty: none
  std::string crontab_set = "default";
  std::string crontab_database;  // the name of the database for the schedules
  LogFormat log_format = LogFormat::text;
  LogLevel log_level = LogLevel::info;
};

// --help, --version and mistakes: the text to print and how to end.
struct EarlyExit {
  ExitCode code;
  std::string text;
};

std::variant<Config, EarlyExit> parse_command_line(int argc, const char* const* argv);

}  // namespace pulse
