// The command line as one checked struct.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "duration.hpp"
#include "exit_code.hpp"
#include "log.hpp"

namespace pulse {

struct Config {
  std::string database;  // a name, a conninfo string or a URI; empty: libpq's environment decides
  std::string tasks = "tasks";
  int concurrency = 1;
  bool once = false;
  std::string name;
  Duration grace = std::chrono::seconds(25);
  std::optional<Duration> heartbeat_interval;  // absent: the server's setting
  LogFormat log_format = LogFormat::text;
  LogLevel log_level = LogLevel::info;
};

// --help, --version and mistakes: what to print and how to end.
struct EarlyExit {
  ExitCode code;
  std::string text;
};

std::variant<Config, EarlyExit> parse_command_line(int argc, const char* const* argv);

}  // namespace pulse
