#include "command_line/operation.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdio>

#include "base/text/inert.hpp"
#include "job/operation_steps.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

const Columns kOperationColumns{
    {"operation", "id", Kind::id},          {"action", "action"},
    {"state", "state", Kind::state},        {"changed", "changed", Kind::count},
    {"left alone", "skipped", Kind::count}, {"undoes", "undoes", Kind::id},
    {"why", "skipped_because", Kind::json},
};

void show_progress(const QueryResult::Row& step) {
  if (isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "\r%s changed …", plural(step.integer("changed"), "job").c_str());
  if (step.text("state") != "running") std::fputs("\r\033[K", stderr);
}

// Tells an operator which command goes on with the operation if this program is killed.
void tell_how_to_go_on(const std::string& id) {
  std::fprintf(stderr, "operation %s has begun; \"pulse operations run %s\" goes on with it\n",
               id.c_str(), id.c_str());
}

std::string summary(const QueryResult::Row& step) {
  std::string text = outcome_of(step);
  if (may_be_undone(step)) text += "; pulse undo " + step.text("id") + " takes it back";
  return text;
}

}  // namespace

const Columns& operation_columns() { return kOperationColumns; }

std::string outcome_of(const QueryResult::Row& step) {
  std::string text = "operation " + step.text("id") + " is " + inert(step.text("state")) + ": " +
                     inert(step.text("action")) + " of " + plural(step.integer("changed"), "job");
  if (step.integer("skipped") > 0) {
    text += ", " + spell_count(step.text("skipped")) + " left alone";
    if (!step.is_null("reasons")) text += " (" + inert(step.text("reasons")) + ")";
  }
  return text;
}

bool may_be_undone(const QueryResult::Row& step) {
  return step.is_null("undoes") && step.integer("changed") > 0;
}

ExitStatus run_operation(Console& console, const std::string& id) {
  OperationSteps steps(console.database, id);
  for (bool is_first = true;; is_first = false) {
    const QueryResult step = steps.run();
    const bool is_running = step[0].text("state") == "running";
    if (is_first && is_running) tell_how_to_go_on(id);
    show_progress(step[0]);
    if (is_running) continue;
    console.print_done(summary(step[0]), json_of(kOperationColumns, step[0]));
    const bool is_refused = step[0].integer("changed") == 0 && step[0].integer("skipped") > 0;
    return is_refused ? ExitStatus::refused : ExitStatus::done;
  }
}

ExitStatus stop_operation(Console& console, const std::string& id) {
  const QueryResult stopped = end_operation(console.database, id);
  console.print_done(summary(stopped[0]), json_of(kOperationColumns, stopped[0]));
  return ExitStatus::done;
}

std::string actor() {
  const passwd* entry = getpwuid(geteuid());
  return entry == nullptr ? "uid " + std::to_string(geteuid()) : entry->pw_name;
}

}  // namespace pulse::console
