#include "config.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>
#include <thread>

#include "base/cluster/node_table.hpp"
#include "base/postgres/connection_options.hpp"
#include "base/text/parse_number.hpp"
#include "liveness/identity.hpp"
#include "liveness/registration.hpp"
#include "task/executable/variables.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// A process may run many jobs at once and be quick: the claims decide how much of this is used.
constexpr int kProcessPrefetch = 1000;

// Returns why `text` is no duration of at least `min_duration`; empty where the text is one.
std::string duration_problem(const std::string& text, Duration min_duration) {
  const auto duration = parse_duration(text);
  if (!duration) return "'" + text + "' is not a duration such as 500ms, 5s, 1min, 2h or 1d";
  if (*duration < min_duration) return "'" + text + "' is shorter than " + to_string(min_duration);
  return {};
}

CLI::Validator duration_at_least(Duration min_duration) {
  return {[min_duration](const std::string& text) { return duration_problem(text, min_duration); },
          "DURATION"};
}

// Decimal digits without a zero in front, which the library would read as another base.
std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  const bool is_other_base = text.size() > 1 && text.front() == '0';
  return is_other_base ? std::nullopt : parse_number<std::uint64_t>(text);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return {[least, most](const std::string& text) {
            const auto number = parse_decimal(text);
            if (number && *number >= least && *number <= most) return std::string();
            return "'" + text + "' is not a whole decimal number from " + std::to_string(least) +
                   " to " + std::to_string(most);
          },
          "NUMBER"};
}

// The power of two of a unit such as kB, MiB or g; nothing where there is no such unit.
std::optional<unsigned> parse_size_unit(std::string_view text) {
  constexpr std::string_view kSteps = "kmgt";
  std::string unit(text.substr(std::min(text.find_first_not_of(' '), text.size())));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t step = unit.empty() ? std::string_view::npos : kSteps.find(unit.front());
  if (step == std::string_view::npos) {
    return unit.empty() || unit == "b" ? std::optional(0U) : std::nullopt;
  }
  const std::string rest = unit.substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return std::nullopt;
  return 10 * static_cast<unsigned>(step + 1);
}

// The bytes of a size; nothing where the text is none, or more than any machine has.
std::optional<std::size_t> parse_size(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50U;
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_decimal(text.substr(0, end));
  const auto shift = parse_size_unit(text.substr(end));
  if (!number || *number == 0 || !shift || *number > kMost >> *shift) return std::nullopt;
  return *number << *shift;
}

CLI::Validator size() {
  return {[](const std::string& text) {
            if (parse_size(text)) return std::string();
            return "'" + text + "' is not a size from 1B to 1024TB, such as 512kB, 64MB or 2GB";
          },
          "SIZE"};
}

CLI::Validator http_address() {
  return {[](const std::string& text) {
            const auto parsed = parse_http_address(text);
            const auto* problem = std::get_if<std::string>(&parsed);
            return problem == nullptr ? std::string() : *problem;
          },
          "ADDRESS:PORT"};
}

CLI::Validator process_command() {
  return {[](const std::string& text) {
            const auto parsed = parse_process(text);
            const auto* problem = std::get_if<std::string>(&parsed);
            return problem == nullptr ? std::string() : *problem;
          },
          "NAME=COMMAND"};
}

CLI::Validator program_command() {
  return {[](const std::string& text) {
            const auto parsed = parse_program(text);
            const auto* problem = std::get_if<std::string>(&parsed);
            return problem == nullptr ? std::string() : *problem;
          },
          "COMMAND"};
}

CLI::Validator worker_name() {
  return {[](const std::string& text) { return worker_name_problem(text).value_or(""); }, "TEXT"};
}

CLI::Validator variable_name() {
  return {[](const std::string& text) {
            const auto problem = name_problem(text);
            return problem ? '\'' + text + "' " + *problem : std::string();
          },
          "NAME"};
}

constexpr int kMaxProgramCopies = 1000;

// The fault of all --process options together, in the words of an error message; empty without a
// fault.
std::string take_processes(const std::vector<std::string>& texts, Config& config) {
  for (const std::string& text : texts) {
    auto command = std::get<ProcessCommand>(parse_process(text));
    for (const ProcessCommand& other : config.processes) {
      if (other.task == command.task) return "--process: '" + command.task + "' is given twice\n";
    }
    config.processes.push_back(std::move(command));
  }
  const bool has_queues = !config.processes.empty() || !config.programs.empty();
  if (has_queues && !config.prefetch) config.prefetch = kProcessPrefetch;
  return {};
}

const std::map<std::string, LogFormat> kLogFormats{{"text", LogFormat::text},
                                                   {"json", LogFormat::json}};
const std::map<std::string, LogLevel> kLogLevels{{"debug", LogLevel::debug},
                                                 {"info", LogLevel::info},
                                                 {"warning", LogLevel::warning},
                                                 {"error", LogLevel::error}};
const std::map<std::string, TaskOutputUse> kTaskOutputUses{{"log", TaskOutputUse::log},
                                                           {"inherit", TaskOutputUse::inherit},
                                                           {"discard", TaskOutputUse::discard}};

const std::map<std::string, ProgramVariables> kProgramVariables{{"all", ProgramVariables::all},
                                                                {"clean", ProgramVariables::clean}};

template <typename Value>
std::vector<std::string> names_of(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

// Options whose words become values once all words are known to be right.
struct Words {
  std::string grace;
  std::string heartbeat_interval;
  std::string http;
  std::vector<std::string> databases;
  std::vector<std::string> processes;
  std::vector<std::string> programs;
  std::string start_limit;
  std::string replace_grace;
  std::string max_held_bytes;
  std::string program_env = "all";
  std::string task_output = "log";
  std::string log_format = "text";
  std::string log_level = "info";
};

void add_program_options(CLI::App& app, Config& config, Words& words) {
  app.add_option("--program", words.programs,
                 "Run the jobs of the tasks that COMMAND names in its hello; may be repeated")
      ->check(program_command())
      ->allow_extra_args(false);
  app.add_option("--programs", config.program_copies, "Processes of each --program")
      ->check(whole_number(1, kMaxProgramCopies))
      ->capture_default_str();
  app.add_option("--start-limit", words.start_limit, "How long a program may take to its hello")
      ->check(duration_at_least(1ms))
      ->capture_default_str();
  app.add_option("--replace-grace", words.replace_grace,
                 "How long jobs of old code may go on after SIGHUP (default: their own limits)")
      ->check(duration_at_least(0ms));
  app.add_option("--program-env", words.program_env,
                 "Variables that programs get: all of the worker's but PG* and PULSE_*, or clean, "
                 "those that tasks get")
      ->check(CLI::IsMember(names_of(kProgramVariables)))
      ->option_text("all|clean");
}

void add_crontab_options(CLI::App& app, Config& config) {
  app.add_option("--crontab", config.crontab,
                 "File of schedules in Graphile Worker's grammar; SIGHUP reads it again");
  app.add_option("--crontab-set", config.crontab_set,
                 "Name of the set of schedules that the file of --crontab is the whole of")
      ->capture_default_str();
  app.add_option("--crontab-database", config.crontab_database,
                 "NAME of the database that gets the schedules, with several databases");
}

void add_database_options(CLI::App& app, Config& config, Words& words) {
  app.add_option("-d,--database", words.databases,
                 "Database name, connection string or URI (default: libpq's environment); given "
                 "several times, as NAME=DSN, all databases share the slots")
      ->option_text("[NAME=]DSN ...")
      ->allow_extra_args(false);
  app.add_option("--cluster", config.cluster,
                 "Serve each node of a cluster of Citus, in place of --database; SIGHUP reads the "
                 "cluster's list of nodes again")
      ->option_text("DSN");
}

void add_options(CLI::App& app, Config& config, Words& words) {
  add_database_options(app, config, words);
  app.add_option("-t,--tasks", config.tasks,
                 "Folder of executables, one per task; without it, only functions, processes and "
                 "programs run")
      ->capture_default_str()
      ->each([&config](const std::string&) { config.is_folder_wanted = true; });
  app.add_option("--process", words.processes,
                 "Run the jobs of a task in processes of COMMAND that stay; may be repeated")
      ->check(process_command())
      ->allow_extra_args(false);
  add_program_options(app, config, words);
  app.add_option("-c,--concurrency", config.concurrency,
                 "Jobs to run at once; programs have slots of their own unless this is given")
      ->check(whole_number(1, kMaxSlots))
      ->capture_default_str()
      ->each([&config](const std::string&) { config.is_concurrency_given = true; });
  app.add_option(
         "--prefetch", config.prefetch,
         "Jobs to hold ahead at most, of those that the next moments will use (default: four "
         "per slot; 0: none)")
      ->check(whole_number(0, kMaxAhead));
  app.add_option("--max-held-bytes", words.max_held_bytes,
                 "Claim nothing while the payloads of held jobs have so many bytes, as in 64MB")
      ->check(size())
      ->default_str("256MB");
  app.add_flag("--allow-privileges", config.may_gain_privileges,
               "Let tasks gain privileges by sudo and other setuid programs");
  app.add_flag("--once", config.once, "Run until no job is ready, then exit");
  app.add_option("--name", config.name, "Label of this worker in views and logs")
      ->check(worker_name())
      ->capture_default_str();
  app.add_option("--grace", words.grace, "How long running tasks may take to finish at a stop")
      ->check(duration_at_least(0ms))
      ->capture_default_str();
  app.add_option("--heartbeat-interval", words.heartbeat_interval,
                 "How often to check in (default: the server's)")
      ->check(duration_at_least(kMinHeartbeatInterval));
  app.add_option("--http", words.http,
                 "Serve /livez, /readyz and /metrics there; a port alone means the loopback's")
      ->check(http_address());
  app.add_option("--http-name", config.http_names,
                 "A name by which clients call the pages of --http, beside its address and "
                 "localhost; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--task-output", words.task_output,
                 "What tasks print: log, inherit (print it where the worker does) or discard")
      ->check(CLI::IsMember(names_of(kTaskOutputUses)))
      ->option_text("log|inherit|discard");
  app.add_option("--pass-env", config.pass_env,
                 "Names of variables that tasks get from the worker's environment; PGPASSWORD "
                 "too, where it is named")
      ->check(variable_name());
  app.add_option("--env-file", config.env_file,
                 "File of NAME=value lines that tasks get as variables; SIGHUP reads it again");
  add_crontab_options(app, config);
  app.add_option("--log-format", words.log_format, "text or json")
      ->check(CLI::IsMember(names_of(kLogFormats)))
      ->option_text("text|json");
  app.add_option("--log-level", words.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember(names_of(kLogLevels)))
      ->option_text("LEVEL");
  app.set_version_flag("--version", "pulse-worker " PULSE_VERSION);
}

// Options that contradict each other, or that nothing uses, in the words of an error message; empty
// where there are none.
std::string contradiction(const CLI::App& app, const Config& config) {
  if (config.cluster && app.count("--database") > 0) return kClusterOrDatabases;
  for (const char* option : {"--programs", "--start-limit", "--replace-grace", "--program-env"}) {
    if (app.count(option) > 0 && app.count("--program") == 0) {
      return std::string(option) + " is of programs, and no --program is given";
    }
  }
  for (const char* option : {"--crontab-set", "--crontab-database"}) {
    if (app.count(option) > 0 && config.crontab.empty()) {
      return std::string(option) + " is of a crontab file, and no --crontab is given";
    }
  }
  if (config.crontab_set.empty()) return "--crontab-set: a set needs a name";
  if (!config.http_names.empty() && app.count("--http") == 0) {
    return "--http-name is of the pages of --http, and no --http is given";
  }
  return {};
}

// A unit or an image says the first word, an operator adds a second. Options that are lists grow.
void let_last_word_count(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() != 1) continue;
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

}  // namespace

std::variant<Config, EarlyExit> parse_command_line(int argc, const char* const* argv) {
  Config config;
  config.concurrency = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  config.name = read_hostname() + "-" + std::to_string(getpid());
  Words words;
  words.grace = to_string(config.grace);
  words.start_limit = to_string(config.start_limit);

  CLI::App app("Runs the jobs of pg_pulse: one executable in the tasks folder for each task.",
               "pulse-worker");
  add_options(app, config, words);
  let_last_word_count(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream output;
    const int code = app.exit(error, output, output);
    return EarlyExit{code == 0 ? ExitCode::drained : ExitCode::usage, output.str()};
  }
  if (std::string problem = contradiction(app, config); !problem.empty()) {
    return EarlyExit{ExitCode::usage, problem + "\n"};
  }
  if (!words.databases.empty()) config.databases.clear();
  for (const std::string& text : words.databases) config.databases.push_back(parse_database(text));
  for (const std::string& text : words.programs) {
    config.programs.push_back(std::get<ProcessCommand>(parse_program(text)));
  }
  if (std::string problem = take_processes(words.processes, config); !problem.empty()) {
    return EarlyExit{ExitCode::usage, problem};
  }
  config.grace = *parse_duration(words.grace);
  config.start_limit = *parse_duration(words.start_limit);
  if (!words.max_held_bytes.empty()) config.max_held_bytes = *parse_size(words.max_held_bytes);
  if (!words.replace_grace.empty()) config.replace_grace = parse_duration(words.replace_grace);
  config.program_env = kProgramVariables.at(words.program_env);
  if (!words.heartbeat_interval.empty()) {
    config.heartbeat_interval = parse_duration(words.heartbeat_interval);
  }
  if (!words.http.empty()) {
    config.http = std::get<HttpAddress>(parse_http_address(words.http));
  }
  config.task_output = kTaskOutputUses.at(words.task_output);
  config.log_format = kLogFormats.at(words.log_format);
  config.log_level = kLogLevels.at(words.log_level);
  return config;
}

}  // namespace pulse
