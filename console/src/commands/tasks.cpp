// pulse tasks: depth and age of tasks, and which of them no worker serves.
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

constexpr const char* kTasks =
    "SELECT coalesce(s.name, t.identifier) AS identifier, s.ready, s.future, s.parked, s.running,"
    " extract(epoch FROM s.oldest_due_age) AS oldest_due_age,"
    " u.identifier IS NULL AS is_served, t.max_attempts,"
    " extract(epoch FROM t.timeout) AS timeout, t.queue, t.handler, s.estimated"
    " FROM (SELECT * FROM pulse.stats(1000) WHERE kind = 'task') AS s"
    " LEFT JOIN pulse.unserved AS u ON u.identifier = s.name"
    " FULL JOIN (SELECT * FROM pulse.task_settings ORDER BY identifier LIMIT 1000) AS t"
    " ON t.identifier = s.name"
    " ORDER BY s.oldest_due_at NULLS LAST, 1";

const Columns kColumns{
    {"task", "identifier"},
    {"ready", "ready", Kind::count},
    {"future", "future", Kind::count},
    {"parked", "parked", Kind::count},
    {"running", "running", Kind::count},
    {"oldest due for", "oldest_due_age", Kind::seconds},
    {"served", "is_served", Kind::boolean},
    {"attempts", "max_attempts", Kind::number},
    {"timeout", "timeout", Kind::seconds},
    {"queue", "queue"},
    {"handler", "handler"},
    {"estimated", "estimated", Kind::boolean},
};

}  // namespace

void add_tasks(CommandLine& line) {
  line.add("tasks", "Tasks with jobs or settings", [](Console& console) {
    console.print_list(kColumns, console.database.query(kTasks));
    return ExitStatus::done;
  });
}

}  // namespace pulse::console
