// pulse tasks: depth and age of tasks, and which of them no worker serves.
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

// The view of unserved tasks counts their jobs, so who serves a task is asked of the workers.
constexpr const char* kTasks =
    "WITH living AS MATERIALIZED (SELECT w.tasks FROM pulse.worker_status AS w"
    " WHERE w.ended_at IS NULL AND w.status = 'alive')"
    " SELECT coalesce(s.name, t.identifier) AS identifier, s.ready, s.future, s.parked, s.running,"
    " extract(epoch FROM s.oldest_due_age) AS oldest_due_age,"
    " EXISTS (SELECT FROM living AS l WHERE l.tasks IS NULL"
    " OR coalesce(s.name, t.identifier) = ANY (l.tasks)) AS is_served, t.max_attempts,"
    " extract(epoch FROM t.timeout) AS timeout, t.queue, t.handler, s.estimated"
    " FROM (SELECT * FROM pulse.stats(1000) WHERE kind = 'task') AS s"
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
