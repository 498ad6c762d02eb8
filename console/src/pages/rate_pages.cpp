// One task and one queue: how fast jobs end, how long jobs wait and run.
#include "charts/rates.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"

namespace pulse::console {
namespace {

#define PULSE_RATES                                                                         \
  "SELECT period, started, completed, failed + quarantined AS failed, retried,"             \
  " round(per_second::numeric, 1) AS per_second, extract(epoch FROM wait_p50) AS wait_p50," \
  " extract(epoch FROM wait_p95) AS wait_p95, extract(epoch FROM wait_p99) AS wait_p99,"    \
  " extract(epoch FROM run_p50) AS run_p50, extract(epoch FROM run_p95) AS run_p95,"        \
  " extract(epoch FROM run_p99) AS run_p99"

const Columns kPeriodColumns{{"last", "period"},
                             {"started", "started", Kind::count},
                             {"completed", "completed", Kind::count},
                             {"failed", "failed", Kind::count},
                             {"retried", "retried", Kind::count},
                             {"per second", "per_second", Kind::number},
                             {"wait, median", "wait_p50", Kind::seconds},
                             {"wait, 95 %", "wait_p95", Kind::seconds},
                             {"wait, 99 %", "wait_p99", Kind::seconds},
                             {"run, median", "run_p50", Kind::seconds},
                             {"run, 95 %", "run_p95", Kind::seconds},
                             {"run, 99 %", "run_p99", Kind::seconds}};

struct Subject {
  Path path;
  const char* title;
  const char* section;
  const char* filter;  // of the subject's jobs
  const char* rates;   // of the last minute, hour and day
};

constexpr Subject kTask{"/task", "Task ", "/tasks", "task",
                        PULSE_RATES
                        " FROM pulse.task_rates WHERE identifier = $1 ORDER BY since DESC"};
constexpr Subject kQueue{"/queue", "Queue ", "/queues", "queue",
                         PULSE_RATES
                         " FROM pulse.queue_rates WHERE queue_name = $1 ORDER BY since DESC"};

Markup rates(const Request& request, const Subject& subject) {
  const std::string& name = request.query.get("name");
  Database& database = request.database();
  const bool is_task = &subject == &kTask;
  const auto task = is_task ? std::optional(name) : std::nullopt;
  const auto queue = is_task ? std::nullopt : std::optional(name);
  const auto charts = rate_charts(database, task, queue);
  if (!charts) return uncounted();
  const auto durations = latency_chart(database, task, queue);
  const Markup table =
      html_table(kPeriodColumns, database.query(subject.rates, {name}),
                 {{}, {}, {}, "No attempt started or ended within a day."}, {}, false);
  return {element("div", "charts",
                  {chart(charts->ended), chart(charts->wait), chart(charts->run),
                   durations ? chart(*durations) : Markup()}),
          section("Rates", table)};
}

void add_page(Router& router, const Subject& subject) {
  const Url stream = Url("/live").part(subject.path.text().substr(1));
  router.add("GET", std::string(subject.path.text()), Need::read,
             [&subject, stream](const Request& request) {
               const std::string& name = request.query.get("name");
               const Markup jobs =
                   button(Url("/jobs").with(subject.filter, name), "Jobs", "button");
               return shown_page(request,
                                 {subject.title + name,
                                  subject.section,
                                  {page_heading({subject.title, name}, jobs),
                                   live(Url(stream).with("name", name), rates(request, subject))}});
             });
  router.add_stream(stream.text(), Need::read, std::chrono::seconds(5),
                    [&subject](const Request& request) { return rates(request, subject).html(); });
}

}  // namespace

void add_rate_pages(Router& router) {
  add_page(router, kTask);
  add_page(router, kQueue);
}

}  // namespace pulse::console
