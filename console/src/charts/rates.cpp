#include "charts/rates.hpp"

#include "html/moment.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kHistory =
    "SELECT minute, completed, failed + quarantined AS failed, retried,"
    " extract(epoch FROM wait_p50) AS wait_p50, extract(epoch FROM wait_p95) AS wait_p95,"
    " extract(epoch FROM run_p50) AS run_p50, extract(epoch FROM run_p95) AS run_p95"
    " FROM pulse.rate_history($1, $2) WHERE minute < date_trunc('minute', pulse.now())";

constexpr const char* kHistogram =
    "SELECT extract(epoch FROM at_least) AS at_least,"
    " trim_scale(extract(epoch FROM at_least) * 1000) AS at_least_ms, waits, runs,"
    " sum(waits) OVER () AS all_waits, sum(runs) OVER () AS all_runs"
    " FROM pulse.rate_histogram($1, $2) ORDER BY at_least";

struct Wanted {
  const char* name;
  const char* css;
  const char* field;
};

Chart chart_of(const char* title, const QueryResult& history, const std::vector<Wanted>& wanted,
               std::function<std::string(double)> spell, bool is_stacked) {
  Chart result{title, {}, {}, std::move(spell), is_stacked, is_stacked};
  for (const Wanted& each : wanted) result.series.push_back({each.name, each.css, {}});
  for (std::size_t i = 0; i < history.size(); ++i) {
    result.moments.push_back(clock_of(history[i].text("minute")));
    result.instants.push_back(rfc3339(history[i].text("minute")));
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      result.series[k].values.push_back(history[i].optional_number(wanted[k].field));
    }
  }
  return result;
}

std::string whole_jobs(double number) {
  return spell_count(std::to_string(static_cast<std::int64_t>(number)));
}

// Buckets of a few milliseconds lie closer than whole milliseconds.
std::string spell_bucket(const QueryResult::Row& row) {
  const double seconds = row.number("at_least");
  return seconds < 1 ? row.text("at_least_ms") + " ms" : spell_seconds(seconds);
}

}  // namespace

std::optional<RateCharts> rate_charts(Database& database, const std::optional<std::string>& task,
                                      const std::optional<std::string>& queue) {
  const QueryResult history = database.query(kHistory, {task, queue});
  if (history.empty()) return std::nullopt;
  return RateCharts{chart_of("Ended per minute", history,
                             {{"completed", "first", "completed"},
                              {"retried", "third", "retried"},
                              {"failed", "fourth", "failed"}},
                             whole_jobs, true),
                    chart_of("Wait before the start", history,
                             {{"median", "first", "wait_p50"}, {"95 %", "second", "wait_p95"}},
                             spell_seconds, false),
                    chart_of("Time to run", history,
                             {{"median", "first", "run_p50"}, {"95 %", "second", "run_p95"}},
                             spell_seconds, false)};
}

std::optional<Chart> latency_chart(Database& database, const std::optional<std::string>& task,
                                   const std::optional<std::string>& queue) {
  const QueryResult buckets = database.query(kHistogram, {task, queue});
  if (buckets.empty()) return std::nullopt;
  Chart result{"Attempts of the last hour by duration", {}, {}, whole_jobs, false, true, true};
  result.series = {{"waited", "first", {}, spell_count(buckets[0].text("all_waits"))},
                   {"ran", "second", {}, spell_count(buckets[0].text("all_runs"))}};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    result.moments.push_back(spell_bucket(buckets[i]));
    result.series[0].values.emplace_back(buckets[i].number("waits"));
    result.series[1].values.emplace_back(buckets[i].number("runs"));
  }
  return result;
}

}  // namespace pulse::console
