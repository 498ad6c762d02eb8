// What happens now, and what happened within the hour.
#include <memory>

#include "charts/depth.hpp"
#include "charts/rates.hpp"
#include "html/moment.hpp"
#include "pages/list_page.hpp"
#include "pages/overview/figures.hpp"
#include "pages/pages.hpp"

namespace pulse::console {
namespace {

constexpr const char* kTotalRates =
    "SELECT coalesce(identifier, 'all others') AS identifier, completed,"
    " failed + quarantined AS failed, retried, round(per_second::numeric, 1) AS per_second,"
    " extract(epoch FROM wait_p50) AS wait_p50, extract(epoch FROM wait_p95) AS wait_p95,"
    " extract(epoch FROM run_p50) AS run_p50, extract(epoch FROM run_p95) AS run_p95"
    " FROM pulse.task_rates WHERE period = 'hour'"
    " ORDER BY completed + failed + quarantined + retried DESC, 1 LIMIT 8";

const Columns kRateColumns{
    {"task", "identifier"},
    {"completed", "completed", Kind::count},
    {"failed", "failed", Kind::count},
    {"retried", "retried", Kind::count},
    {"per second", "per_second", Kind::number},
    {"wait, median", "wait_p50", Kind::seconds},
    {"wait, 95 %", "wait_p95", Kind::seconds},
    {"run, median", "run_p50", Kind::seconds},
    {"run, 95 %", "run_p95", Kind::seconds},
};

Markup warnings(const QueryResult::Row& row) {
  Markup list;
  if (row.optional_text("claims") != "t") {
    list += notice("bad", "Claims are off in this session: no job is handed out.");
  }
  if (row.optional_text("sweeps") != "t") {
    list += notice("warning", {"No sweep runs, so dead workers go unnoticed. ",
                               link(Url("/doctor"), "The doctor tells why")});
  }
  const std::string& installation = row.text("installation");
  if (installation == "copy" || installation == "subscribed") {
    list += notice("bad", "This database is a copy of another installation: claims are refused.");
  }
  return list;
}

Markup charts(const Request& request, const Depth& depth) {
  const auto rates = rate_charts(request.database());
  if (!rates) return {element("div", "charts", chart(depth.chart())), uncounted()};
  return element(
      "div", "charts",
      {chart(rates->ended), chart(depth.chart()), chart(rates->wait), chart(rates->run)});
}

Markup overview(const Request& request, Depth& depth) {
  Database& database = request.database();
  const QueryResult rows = database.query(overview_list().sql);
  depth.note(rows[0]);
  const Spelling spelling{microseconds_of(rows[0].text("at")).value_or(0)};
  Markup content = warnings(rows[0]);
  content += overview_figures(rows[0]);
  content += charts(request, depth);
  const QueryResult rates = database.query(kTotalRates);
  if (!rates.empty()) {
    content += section(
        "Busiest tasks of the hour",
        html_table(kRateColumns, rates,
                   {{{"identifier", "/task", "name", "identifier"}}, {}, {}, ""}, spelling, false));
  }
  const List& list = recovery_list();
  content += section("Last recoveries",
                     html_table(list.columns, database.query(list.sql, {"8"}),
                                {{{"job_id", "/jobs", nullptr, "job_id"},
                                  {"identifier", "/jobs", "task", "identifier"},
                                  {"worker", "/workers", nullptr, "worker_id"}},
                                 {},
                                 {},
                                 "No job had to be taken from its worker within a day."},
                                spelling, false));
  return content;
}

}  // namespace

void add_overview_page(Router& router) {
  const auto depth = std::make_shared<Depth>();
  router.add("GET", "/", Need::read, [depth](const Request& request) {
    const Markup content = overview(request, *depth);
    return shown_page(request,
                      {"Overview",
                       "/",
                       {page_heading("Overview"), live(Url("/live").part("overview"), content)}});
  });
  router.add_stream("/live/overview", Need::read, std::chrono::seconds(1),
                    [depth](const Request& request) { return overview(request, *depth).html(); });
}

}  // namespace pulse::console
