// pulse queues: depth, age and limits of named queues, and what changes them.
#include <array>
#include <cstdio>

#include "command_line/command_line.hpp"
#include "command_line/named_change.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "text/inert.hpp"

namespace pulse::console {
namespace {

constexpr std::array<NamedChange, 3> kChanges{{
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
    "SELECT to_json(q) AS document FROM pulse.set_queue($1, $2::int, total => $3::int) AS q";

struct Limits {
  std::string queue;
  std::optional<std::string> concurrency;
  std::optional<std::string> total;
};

ExitStatus limit_queue(Console& console, const Limits& limits) {
  if (!limits.concurrency && !limits.total) {
    std::fputs("pulse: which limit? Give --concurrency or --total\n", stderr);
    return ExitStatus::usage;
  }
  const QueryResult set =
      console.database.query(kLimit, {limits.queue, limits.concurrency, limits.total});
  console.print_done("queue " + inert(limits.queue) + " limited", set[0].text("document"));
  return ExitStatus::done;
}

void add_limit(CommandLine& line, CLI::App& queues) {
  auto limits = std::make_shared<Limits>();
  CLI::App& command =
      line.add_below(queues, "limit", "How many jobs run at a time",
                     [limits](Console& console) { return limit_queue(console, *limits); });
  command.add_option("QUEUE", limits->queue, "Name of the queue, or of a level as mail/*")
      ->required();
  auto* concurrency = command.add_option("--concurrency", limits->concurrency,
                                         "Jobs of exactly this name at a time");
  concurrency->check(CLI::PositiveNumber);
  command.add_option("--total", limits->total,
                     "Jobs of it and of all queues within it at a time; -1: no limit");
}

}  // namespace

void add_queues(CommandLine& line) {
  CLI::App& queues = line.add("queues", "Named queues, and their limits", [](Console& console) {
    console.print_list(queue_list().columns, console.database.query(queue_list().sql));
    return ExitStatus::done;
  });
  for (const NamedChange& change : kChanges) add_named_change(line, queues, "queue", change);
  add_limit(line, queues);
}

}  // namespace pulse::console
