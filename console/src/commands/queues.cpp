// pulse queues: depth, age and limits of named queues, and the commands that change queues.
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text/inert.hpp"
#include "command_line/add_list.hpp"
#include "command_line/command_line.hpp"
#include "command_line/named_change.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

constexpr std::array<NamedChange, 3> kQueueChanges{{
    {"pause", "No job of the queue starts",
     "SELECT to_json(q) AS document FROM pulse.pause_queue($1) AS q", "paused"},
    {"resume", "Its jobs start again",
     "SELECT to_json(q) AS document FROM pulse.resume_queue($1) AS q", "resumed"},
    {"unset", "Takes its settings away",
     "SELECT json_build_object('queue_name', $1::text, 'had_settings', pulse.unset_queue($1))"
     " AS document",
     "has no settings"},
}};

constexpr const char* kLimit =
    "SELECT to_json(q) AS document FROM pulse.set_queue($1, $2::int, total => $3::int,"
    " rate => $4::int, per => $5::interval, burst => $6::int, fair => $7::boolean,"
    " weight => $8::int, strict => $9::boolean, on_dead => $10) AS q";

struct LimitOption {
  const char* name;
  const char* description;
};

// In the order of the parameters of kLimit.
constexpr std::array<LimitOption, 9> kLimitOptions{{
    {"--concurrency", "Jobs of exactly this name at a time"},
    {"--total", "Jobs of it and of all queues within it at a time; -1: no limit"},
    {"--rate", "Claims of all of these in each --per; -1: no limit"},
    {"--per", "The time of the rate, as 1min"},
    {"--burst", "Claims at once at most after a rest; -1: as many as the rate"},
    {"--fair", "yes or no: the queues within it start jobs in turn"},
    {"--weight", "Jobs that it starts in a turn, within a fair level"},
    {"--strict", "yes or no: a claimed job ends before another starts"},
    {"--on-dead", "continue or pause: what a strict queue does when a job fails for good"},
}};

struct Limits {
  std::string queue;
  std::array<std::optional<std::string>, kLimitOptions.size()> values;
};

ExitStatus limit_queue(Console& console, const Limits& limits) {
  Params params{limits.queue};
  params.insert(params.end(), limits.values.begin(), limits.values.end());
  if (std::count(params.begin(), params.end(), std::nullopt) ==
      static_cast<std::ptrdiff_t>(limits.values.size())) {
    std::fputs("pulse: which limit? Give --concurrency, --total, --rate or another\n", stderr);
    return ExitStatus::usage;
  }
  const QueryResult set = console.database.query(kLimit, params);
  console.print_done("queue " + inert(limits.queue) + " limited", set[0].text("document"));
  return ExitStatus::done;
}

void add_limit(CommandLine& line, CLI::App& queues) {
  auto limits = std::make_shared<Limits>();
  CLI::App& command =
      line.add_below(queues, "limit", "How many jobs run at a time, how often, and in which order",
                     [limits](Console& console) { return limit_queue(console, *limits); });
  command.add_option("QUEUE", limits->queue, "Name of the queue, or of a level as mail/*")
      ->required();
  for (std::size_t i = 0; i < kLimitOptions.size(); ++i) {
    const LimitOption& option = kLimitOptions[i];
    command.add_option(option.name, limits->values[i], option.description);
  }
}

}  // namespace

void add_queues(CommandLine& line) {
  CLI::App& queues = add_list(line, "queues", "Named queues, and their limits", queue_list());
  for (const NamedChange& change : kQueueChanges) add_named_change(line, queues, "queue", change);
  add_limit(line, queues);
}

}  // namespace pulse::console
