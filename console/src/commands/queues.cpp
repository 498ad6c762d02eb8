// pulse queues: depth and age of named queues.
#include "commands/command_line.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

constexpr const char* kQueues =
    "SELECT name, ready AS open, parked, running,"
    " extract(epoch FROM oldest_due_age) AS oldest_due_age, paused, estimated"
    " FROM pulse.stats(1000) WHERE kind = 'queue' ORDER BY oldest_due_at NULLS LAST, name";

const Columns kColumns{
    {"queue", "name"},
    {"open", "open", Kind::count},
    {"parked", "parked", Kind::count},
    {"running", "running", Kind::count},
    {"oldest due for", "oldest_due_age", Kind::seconds},
    {"paused", "paused", Kind::boolean},
    {"estimated", "estimated", Kind::boolean},
};

}  // namespace

void add_queues(CommandLine& line) {
  line.add("queues", "Named queues with jobs", [](Console& console) {
    console.print_list(kColumns, console.database.query(kQueues));
    return ExitStatus::done;
  });
}

}  // namespace pulse::console
