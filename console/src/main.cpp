#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log/standard_streams.hpp"
#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
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

ExitStatus run_command(const CommandLine& line) {
  auto options =
      ConnectOptions::read(line.options().database, "pulse", ConnectOptions::Server::any);
  if (const auto* problem = std::get_if<std::string>(&options)) {
    std::fprintf(stderr, "pulse: --database: %s\n", inert(*problem).c_str());
    return ExitStatus::usage;
  }
  const Style style = Style::of_stdout([](const char* name) { return std::getenv(name); });
  Console console{line.options(), Database(std::get<ConnectOptions>(std::move(options))),
                  Output(style, !line.options().has_no_pager && !line.options().is_json)};
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
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "pulse: standard output took not all: %s\n", std::strerror(errno));
    status = ExitStatus::output_lost;
  }
  return static_cast<int>(*status);
}
