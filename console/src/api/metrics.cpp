// /metrics: the overview in Prometheus' format.
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <sstream>

#include "api/routes.hpp"

namespace pulse::console {
namespace {

#define PULSE_IS_PART(count) \
  " CASE WHEN '" count "' = ANY (estimated) THEN 1 ELSE 0 END AS " count "_is_part,"

constexpr const char* kOverview =
    "SELECT ready, future, due_next_minute, parked_future, parked_paused, parked_full,"
    PULSE_IS_PART("ready") PULSE_IS_PART("future") PULSE_IS_PART("parked_future")
    PULSE_IS_PART("parked_paused") PULSE_IS_PART("parked_full") PULSE_IS_PART("parked_waiting")
    PULSE_IS_PART("running") PULSE_IS_PART("due_next_minute") PULSE_IS_PART("completed")
    PULSE_IS_PART("failed") PULSE_IS_PART("quarantined") PULSE_IS_PART("cancelled")
    PULSE_IS_PART("expired")
    " parked_waiting, running, completed, failed, quarantined, cancelled, expired, workers_alive,"
    " workers_draining, workers_silent, workers_lost, dead_letters_refused,"
    " extract(epoch FROM coalesce(oldest_due_age, '0')) AS oldest_due_age,"
    " extract(epoch FROM counted_at) AS counted_at,"
    " $1 AS unserved,"
    " CASE WHEN claims THEN 1 ELSE 0 END AS claims, CASE WHEN sweeps THEN 1 ELSE 0 END AS sweeps"
    " FROM pulse.overview";

struct Sample {
  const char* column;
  const char* label;  // of the family; empty: the family has no label
};

struct Family {
  const char* name;
  const char* help;
  const char* label;
  std::vector<Sample> samples;
};

const std::array kFamilies{
    Family{"pulse_queue_jobs",
           "Live jobs by state.",
           "state",
           {{"ready", "ready"},
            {"future", "future"},
            {"parked_future", "parked_future"},
            {"parked_paused", "parked_paused"},
            {"parked_full", "parked_full"},
            {"parked_waiting", "parked_waiting"},
            {"running", "running"}}},
    Family{"pulse_queue_jobs_estimated",
           "Whether pulse_queue_jobs tells a part: there are as many jobs or more.",
           "state",
           {{"ready_is_part", "ready"},
            {"future_is_part", "future"},
            {"parked_future_is_part", "parked_future"},
            {"parked_paused_is_part", "parked_paused"},
            {"parked_full_is_part", "parked_full"},
            {"parked_waiting_is_part", "parked_waiting"},
            {"running_is_part", "running"}}},
    Family{"pulse_queue_counted_timestamp_seconds",
           "When the live jobs were counted.",
           "",
           {{"counted_at", ""}}},
    Family{"pulse_queue_due_next_minute_jobs",
           "Jobs that fall due within a minute.",
           "",
           {{"due_next_minute", ""}}},
    Family{"pulse_queue_due_next_minute_jobs_estimated",
           "Whether pulse_queue_due_next_minute_jobs tells a part: there are as many jobs or more.",
           "",
           {{"due_next_minute_is_part", ""}}},
    Family{"pulse_queue_oldest_due_age_seconds",
           "For how long the job has been due that waits longest.",
           "",
           {{"oldest_due_age", ""}}},
    Family{"pulse_queue_unserved_tasks",
           "Tasks with due jobs that no living worker serves, counted once a minute.",
           "",
           {{"unserved", ""}}},
    Family{"pulse_queue_ended_last_minute_jobs",
           "Jobs that ended within the last minute, by state.",
           "state",
           {{"completed", "completed"},
            {"failed", "failed"},
            {"quarantined", "quarantined"},
            {"cancelled", "cancelled"},
            {"expired", "expired"}}},
    Family{"pulse_queue_ended_last_minute_jobs_estimated",
           "Whether pulse_queue_ended_last_minute_jobs tells a part: as many jobs ended or more.",
           "state",
           {{"completed_is_part", "completed"},
            {"failed_is_part", "failed"},
            {"quarantined_is_part", "quarantined"},
            {"cancelled_is_part", "cancelled"},
            {"expired_is_part", "expired"}}},
    Family{"pulse_queue_workers",
           "Workers by state.",
           "state",
           {{"workers_alive", "alive"},
            {"workers_draining", "draining"},
            {"workers_silent", "silent"},
            {"workers_lost", "lost"}}},
    Family{"pulse_queue_dead_letters_refused",
           "Dead letters that were refused since the server started.",
           "",
           {{"dead_letters_refused", ""}}},
    Family{"pulse_queue_claims", "Whether claims are on.", "", {{"claims", ""}}},
    Family{"pulse_queue_sweeps", "Whether sweeps are made.", "", {{"sweeps", ""}}},
};

prometheus::MetricFamily family_of(const Family& family, const QueryResult::Row& row) {
  prometheus::MetricFamily made{family.name, family.help, prometheus::MetricType::Gauge, {}};
  for (const Sample& sample : family.samples) {
    const auto& value = row.optional_text(sample.column);
    if (!value) continue;
    prometheus::ClientMetric metric;
    if (*family.label != '\0') metric.label.push_back({family.label, sample.label});
    metric.gauge.value = std::stod(*value);
    made.metric.push_back(metric);
  }
  return made;
}

// To count unserved tasks, the server reads each task, so a scrape takes the count of the last
// minute.
class UnservedTasks {
 public:
  std::string count(Database& database) {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (count_.empty() || now - counted_at_ >= std::chrono::minutes(1)) {
      count_ = database.query("SELECT count(*) AS tasks FROM pulse.unserved")[0].text("tasks");
      counted_at_ = now;
    }
    return count_;
  }

 private:
  std::mutex mutex_;
  std::string count_;
  std::chrono::steady_clock::time_point counted_at_;
};

Response metrics(const Request& request, UnservedTasks& unserved) {
  Database& database = request.database();
  const QueryResult overview = database.query(kOverview, {unserved.count(database)});
  std::vector<prometheus::MetricFamily> families;
  for (const Family& family : kFamilies) families.push_back(family_of(family, overview[0]));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return {.body = text.str(), .type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace

void add_metrics_route(Router& router) {
  const auto unserved = std::make_shared<UnservedTasks>();
  router.add("GET", "/metrics", Need::read,
             [unserved](const Request& request) { return metrics(request, *unserved); });
}

}  // namespace pulse::console
