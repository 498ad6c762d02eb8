// pulse add: a job, from the command line. pulse keys and forget: the keys of add --once.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>

#include "base/postgres/array_literal.hpp"
#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

// NULL for `after` waits for nothing, as add_job; so one statement serves both functions. The call
// names `trace`, so the server makes the setting before the call.
constexpr const char* kAdd =
    "SELECT id, state::text AS state FROM"
    " (SELECT set_config('pulse.traceparent', coalesce($14, ''), true) OFFSET 0) AS trace (parent),"
    " pulse.add_job_after(CASE WHEN trace.parent IS NOT NULL THEN coalesce($1::bigint[], '{}') END,"
    " $2, $3::json, $4,"
    " coalesce($5::timestamptz, now() + $6::interval), $7::int, $8, $9::int, $10::text[],"
    " coalesce($11, 'replace'), coalesce($12, 'completed'), $13::timestamptz)";

const Columns kAddedColumns{{"job", "id", Kind::id}, {"state", "state", Kind::state}};

using Text = std::optional<std::string>;

constexpr const char* kAddOnce =
    "SELECT o.id, o.state, o.is_new FROM"
    " (SELECT set_config('pulse.traceparent', coalesce($11, ''), true) OFFSET 0) AS trace (parent),"
    " pulse.add_job_once($1::interval, $2,"
    " CASE WHEN trace.parent IS NOT NULL THEN $3 END, $4::json, $5,"
    " coalesce($6::timestamptz, now() + $7::interval), $8::int, $9::int, $10::text[]) AS o";
constexpr const char* kKeys =
    "SELECT identifier, unique_key, unique_until, job_id, state, added_by"
    " FROM pulse.list_unique_keys($1, $2, $3::int)";
const Columns kKeyColumns{{"task", "identifier"},
                          {"key", "unique_key"},
                          {"until", "unique_until", Kind::time},
                          {"job", "job_id", Kind::id},
                          {"state", "state", Kind::state},
                          {"added by", "added_by"}};
constexpr const char* kForget = "SELECT pulse.forget_once($1, $2)::text AS forgotten";

struct NewJob {
  std::string task;
  Text payload;
  Text queue;
  Text run_at;
  Text delay;
  Text max_attempts;
  Text key;
  Text key_mode;
  Text priority;
  std::vector<std::string> flags;
  std::vector<std::string> after;
  Text starts_when;
  Text start_by;
  Text traceparent;
  Text once;
  Text period;
};

Text array_or_null(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  return array_literal(texts);
}

// Nothing where standard input cannot be read: the text read so far would be another payload.
Text standard_input() {
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (std::ferror(stdin) == 0) return text;
  std::fprintf(stderr, "pulse: cannot read standard input: %s\n", std::strerror(errno));
  return std::nullopt;
}

ExitStatus add_once(Console& console, const NewJob& job) {
  const QueryResult rows = console.database.query(
      kAddOnce, {job.period, job.once, job.task, job.payload, job.queue, job.run_at, job.delay,
                 job.max_attempts, job.priority, array_or_null(job.flags), job.traceparent});
  const std::string& id = rows[0].text("id");
  const std::string& state = rows[0].text("state");
  console.print_done(rows[0].text("is_new") == "t" ? "job " + id + " added: " + state
                                                   : "job " + id + " was there: " + state,
                     json_of(kAddedColumns, rows[0]));
  return ExitStatus::done;
}

ExitStatus forget_once(Console& console, const std::string& task, const std::string& key) {
  const bool is_forgotten =
      console.database.query(kForget, {task, key})[0].text("forgotten") == "true";
  if (!is_forgotten) {
    std::fprintf(stderr, "pulse: no period of key %s of task %s lasts\n", inert(key).c_str(),
                 inert(task).c_str());
    return ExitStatus::refused;
  }
  console.print_done("forgotten", R"({"forgotten": true})");
  return ExitStatus::done;
}

ExitStatus add(Console& console, NewJob job) {
  if (job.payload == "-") {
    job.payload = standard_input();
    if (!job.payload) return ExitStatus::usage;
  }
  if (job.once) return add_once(console, job);
  const QueryResult rows = console.database.query(
      kAdd, {array_or_null(job.after), job.task, job.payload, job.queue, job.run_at, job.delay,
             job.max_attempts, job.key, job.priority, array_or_null(job.flags), job.key_mode,
             job.starts_when, job.start_by, job.traceparent});
  console.print_done("job " + rows[0].text("id") + " added: " + rows[0].text("state"),
                     json_of(kAddedColumns, rows[0]));
  return ExitStatus::done;
}

void add_once_options(CLI::App& command, NewJob& job, CLI::Option* key) {
  auto* once = command.add_option("--once", job.once, "Key: no second job of the task in --for")
                   ->option_text("KEY")
                   ->excludes(key);
  auto* period = command.add_option("--for", job.period, "How long --once counts, as 1d")
                     ->transform(is_duration())
                     ->option_text("PERIOD")
                     ->needs(once);
  once->needs(period);
}

struct WantedKeys {
  Text task;
  Text key;
  int limit = 50;
};

void add_keys(CommandLine& line) {
  auto wanted = std::make_shared<WantedKeys>();
  CLI::App& command =
      line.add("keys", "Keys of add --once, the longest period first", [wanted](Console& console) {
        console.print_list(kKeyColumns,
                           console.database.query(
                               kKeys, {wanted->task, wanted->key, std::to_string(wanted->limit)}));
        return ExitStatus::done;
      });
  command.add_option("-t,--task", wanted->task, "Only of this task");
  command.add_option("-k,--key", wanted->key, "Only this key");
  command.add_option("-n,--limit", wanted->limit, "How many at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

void add_forget(CommandLine& line) {
  auto names = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App& command = line.add(
      "forget", "End the period of a key of add --once",
      [names](Console& console) { return forget_once(console, names->first, names->second); });
  command.add_option("TASK", names->first, "Name of the task")->required();
  command.add_option("KEY", names->second, "Key of add --once")->required();
}

}  // namespace

void add_add(CommandLine& line) {
  add_keys(line);
  add_forget(line);
  auto job = std::make_shared<NewJob>();
  CLI::App& command =
      line.add("add", "Add a job", [job](Console& console) { return add(console, *job); });
  command.add_option("TASK", job->task, "Name of the task")->required();
  command.add_option("PAYLOAD", job->payload, "JSON; - reads it from standard input");
  command.add_option("-q,--queue", job->queue, "Named queue");
  auto* at = command.add_option("--at", job->run_at, "When it is due, as 2026-12-24 18:00+01");
  command.add_option("--in", job->delay, "It is due so long from now")
      ->transform(is_duration())
      ->excludes(at);
  command.add_option("--max-attempts", job->max_attempts, "Attempts in all")
      ->check(CLI::Range(1, 32767));
  auto* key = command.add_option("-k,--key", job->key, "Key: replaces a waiting job that has it");
  add_once_options(command, *job, key);
  command.add_option("--key-mode", job->key_mode, "replace, preserve_run_at or dedupe")
      ->check(CLI::IsMember({"replace", "preserve_run_at", "dedupe", "unsafe_dedupe"}))
      ->option_text("MODE");
  command.add_option("-p,--priority", job->priority, "A lower number is claimed first")
      ->check(CLI::Range(-32768, 32767));
  command.add_option("--flag", job->flags, "Flag; may be repeated")->allow_extra_args(false);
  command.add_option("--after", job->after, "Ids of jobs that end first, with commas")
      ->delimiter(',')
      ->check(is_id());
  command.add_option("--starts-when", job->starts_when, "completed, ended or failed")
      ->check(CLI::IsMember({"completed", "ended", "failed"}))
      ->option_text("HOW");
  command.add_option("--traceparent", job->traceparent, "W3C traceparent of what adds it")
      ->envname("TRACEPARENT");
  command.add_option("--start-by", job->start_by, "It expires unless a claim takes it by then");
}

}  // namespace pulse::console
