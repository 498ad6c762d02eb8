// pulse queues: depth, age and limits of named queues, and what changes them.
#include <array>

#include "command_line/command_line.hpp"
#include "command_line/named_change.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "text/inert.hpp"

namespace pulse::console {
namespace {

constexpr std::array<NamedChange, 3> kChanges{{
    {"pause", "No job of the queue starts", "SELECT FROM pulse.pause_queue($1)", "paused"},
    {"resume", "Its jobs start again", "SELECT FROM pulse.resume_queue($1)", "resumed"},
    {"unset", "Takes its settings away", "SELECT pulse.unset_queue($1)", "has no settings"},
}};

struct Limits {
  std::string queue;
  std::optional<std::string> concurrency;
  std::optional<std::string> total;
};

void add_limit(CommandLine& line, CLI::App& queues) {
  auto limits = std::make_shared<Limits>();
  CLI::App& command =
      line.add_below(queues, "limit", "How many jobs run at a time", [limits](Console& console) {
        console.database.query("SELECT FROM pulse.set_queue($1, $2::int, total => $3::int)",
                               {limits->queue, limits->concurrency, limits->total});
        console.output.print("queue " + inert(limits->queue) + " limited\n");
        return ExitStatus::done;
      });
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
