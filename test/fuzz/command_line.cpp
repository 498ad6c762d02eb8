// The options of pulse-worker, one argument per line.
#include <string>

#include "config.hpp"
#include "target.hpp"

namespace pulse::fuzz {
namespace {

using Parsed = std::variant<Config, EarlyExit>;

Parsed parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers{"pulse-worker"};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  pointers.push_back(nullptr);
  return parse_command_line(static_cast<int>(pointers.size()) - 1, pointers.data());
}

void check_ranges(const Config& config) {
  constexpr int kMaxSlots = 10'000;
  promise(config.concurrency >= 1 && config.concurrency <= kMaxSlots, "concurrency is in range");
  promise(config.grace.count() >= 0, "the grace is not negative");
  if (config.heartbeat_interval) {
    constexpr int kMin = 50;
    promise(config.heartbeat_interval->count() >= kMin, "a heartbeat interval is in range");
  }
}

// The same durations and numbers when they are written as they were understood.
void check_again(const Config& config) {
  std::vector<std::string> arguments{"--concurrency=" + std::to_string(config.concurrency),
                                     "--grace=" + to_string(config.grace)};
  if (config.heartbeat_interval) {
    arguments.push_back("--heartbeat-interval=" + to_string(*config.heartbeat_interval));
  }
  const Parsed parsed = parse(arguments);
  const Config* again = std::get_if<Config>(&parsed);
  promise(again != nullptr, "what was understood can be said again");
  promise(again->concurrency == config.concurrency && again->grace == config.grace &&
              again->heartbeat_interval == config.heartbeat_interval,
          "and means the same");
}

}  // namespace

void command_line(std::string_view input) {
  constexpr std::size_t kMaxArguments = 32;
  std::vector<std::string> arguments;
  for (const std::string_view piece : pieces_of(input, '\n')) {
    // An argument ends at its first NUL, as any does.
    if (arguments.size() < kMaxArguments) arguments.emplace_back(piece.substr(0, piece.find('\0')));
  }
  const Parsed parsed = parse(arguments);
  if (const auto* early = std::get_if<EarlyExit>(&parsed)) {
    promise(early->code == ExitCode::drained || early->code == ExitCode::usage,
            "it says how to end");
    promise(!early->text.empty(), "and why");
    return;
  }
  check_ranges(std::get<Config>(parsed));
  check_again(std::get<Config>(parsed));
}

}  // namespace pulse::fuzz
