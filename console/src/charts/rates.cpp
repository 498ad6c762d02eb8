#include "charts/rates.hpp"

#include <cstdlib>

#include "html/moment.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kHistory =
    "SELECT minute, completed, failed + quarantined AS failed, retried,"
    " extract(epoch FROM wait_p50) AS wait_p50, extract(epoch FROM wait_p95) AS wait_p95,"
    " extract(epoch FROM run_p50) AS run_p50, extract(epoch FROM run_p95) AS run_p95"
    " FROM pulse.rate_history($1, $2) WHERE minute < date_trunc('minute', pulse.now())";

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
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const auto& cell = history[i].optional_text(wanted[k].field);
      result.series[k].values.push_back(
          cell ? std::optional<double>(std::strtod(cell->c_str(), nullptr)) : std::nullopt);
    }
  }
  return result;
}

std::string whole_jobs(double number) {
  return spell_count(std::to_string(static_cast<std::int64_t>(number)));
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
                             {{"half", "first", "wait_p50"}, {"95 %", "second", "wait_p95"}},
                             spell_seconds, false),
                    chart_of("Time to run", history,
                             {{"half", "first", "run_p50"}, {"95 %", "second", "run_p95"}},
                             spell_seconds, false)};
}

}  // namespace pulse::console
