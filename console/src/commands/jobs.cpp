// pulse jobs: live and ended jobs that meet what is asked for, the newest first.
#include <chrono>
#include <cstdio>

#include "command_line/command_line.hpp"
#include "command_line/job_filter.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

constexpr const char* kJobs =
    "SELECT id, state, identifier, queue_name, priority, attempts, max_attempts, crashes, job_key,"
    " worker_id, run_at, created_at, claimed_at, finished_at, progress, last_error"
    " FROM pulse.list_jobs($1::text[], $2, $3, $4, $5, $6::interval, $7::interval, $8::bigint,"
    " $9::int)";

const Columns kColumns{
    {"job", "id", Kind::id},
    {"task", "identifier", Kind::text, 30},
    {"state", "state", Kind::state},
    {"queue", "queue_name", Kind::text, 24},
    {"attempts", "attempts", Kind::number},
    {"of", "max_attempts", Kind::number},
    {"crashes", "crashes", Kind::number},
    {"priority", "priority", Kind::number},
    {"key", "job_key", Kind::text, 24},
    {"due", "run_at", Kind::time},
    {"", "created_at", Kind::time},
    {"", "claimed_at", Kind::time},
    {"ended", "finished_at", Kind::time},
    {"", "worker_id", Kind::id},
    {"progress", "progress", Kind::part},
    {"last error", "last_error", Kind::text, 60},
};

struct Wanted {
  JobFilter filter;
  std::optional<std::string> before;
  int limit = 50;
};

struct Page {
  QueryResult rows;
  std::optional<std::string> next;  // --before of what follows
};

// A call looks at a bounded number of jobs, so one that found too few is repeated, for a moment.
Page read_page(Database& database, const Wanted& wanted) {
  constexpr auto kPatience = std::chrono::milliseconds(200);
  const auto start = std::chrono::steady_clock::now();
  Page page{QueryResult(), wanted.before};
  std::vector<QueryResult::Cell> cells;
  std::vector<std::string> names;
  for (const Column& column : kColumns) names.push_back(column.field);
  int left = wanted.limit;
  for (bool has_more = true; has_more && left > 0;) {
    Params params = wanted.filter.params();
    params.insert(params.end(), {page.next, std::to_string(left)});
    const QueryResult rows = database.query(kJobs, params);
    page.next.reset();
    has_more = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_job = !rows[i].is_null("state");
      if (!is_job || left == 1) page.next = rows[i].text("id");
      if (!is_job) {
        has_more = std::chrono::steady_clock::now() - start < kPatience;
        break;
      }
      --left;
      for (const std::string& name : names) cells.push_back(rows[i].optional_text(name));
    }
  }
  page.rows = QueryResult(std::move(names), std::move(cells));
  return page;
}

ExitStatus list_jobs(Console& console, const Wanted& wanted) {
  const Page page = read_page(console.database, wanted);
  console.print_list(kColumns, page.rows);
  if (page.next && page.rows.size() < static_cast<std::size_t>(wanted.limit)) {
    std::fprintf(stderr, "pulse: looked at the newest jobs only; --before %s looks further\n",
                 page.next->c_str());
  } else if (page.next && console.output.look().is_terminal && !console.options.is_json) {
    std::fprintf(stderr, "more: --before %s\n", page.next->c_str());
  }
  return ExitStatus::done;
}

}  // namespace

void add_jobs(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  CLI::App& command = line.add("jobs", "Live and ended jobs, the newest first",
                               [wanted](Console& console) { return list_jobs(console, *wanted); });
  add_filter_options(command, wanted->filter);
  command.add_option("-n,--limit", wanted->limit, "How many at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--before", wanted->before, "Only jobs with a lower id: the next page")
      ->check(is_id());
}

}  // namespace pulse::console
