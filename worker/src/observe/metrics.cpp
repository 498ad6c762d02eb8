#include "observe/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

namespace pulse {
namespace {

// A worker serves the tasks of a folder and of a database: a few. Beyond this number the rest is
// counted together, because each task costs the scraper a series for each line.
constexpr std::size_t kMaxTasks = 1'000;
constexpr const char* kOtherTasks = "(other)";

const prometheus::Histogram::BucketBoundaries kSeconds{0.001, 0.005, 0.01, 0.05, 0.1, 0.5,  1,
                                                       5,     10,    30,   60,   300, 1800, 7200};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

prometheus::MetricFamily gauge(const char* name, const char* help, double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  return {name, help, prometheus::MetricType::Gauge, {metric}};
}

// The state of one database after the other, or of the only one.
class StateGauges {
 public:
  explicit StateGauges(std::vector<prometheus::MetricFamily>& families) : families_(families) {}

  void add(const char* name, const char* help, const WorkerState& state, double value) {
    const auto family = std::find_if(families_.begin(), families_.end(),
                                     [&](const auto& each) { return each.name == name; });
    prometheus::MetricFamily one = gauge(name, help, value);
    if (!state.database.empty()) one.metric[0].label = {{"database", state.database}};
    if (family == families_.end()) return families_.push_back(std::move(one));
    family->metric.push_back(std::move(one.metric[0]));
  }

  void add_all(const WorkerState& state, TimePoint now) {
    add("pulse_jobs_running", "Jobs whose task runs.", state, static_cast<double>(state.running));
    add("pulse_jobs_prefetched", "Jobs that wait for a slot.", state,
        static_cast<double>(state.prefetched));
    add("pulse_jobs_held", "Jobs that are claimed and not yet accounted for.", state,
        static_cast<double>(state.held));
    if (state.last_good == TimePoint{}) return;
    add("pulse_heartbeat_age_seconds", "Time since the last beat that was answered well.", state,
        seconds(now - state.last_good));
  }

 private:
  std::vector<prometheus::MetricFamily>& families_;
};

void add_state(std::vector<prometheus::MetricFamily>& families, const Health::Seen& seen,
               TimePoint now) {
  const WorkerState& state = seen.state;
  const auto add = [&](const char* name, const char* help, auto value) {
    families.push_back(gauge(name, help, static_cast<double>(value)));
  };
  add("pulse_worker_ready", "Whether /readyz says so.", why_not_ready(seen, now).empty() ? 1 : 0);
  add("pulse_slots", "Jobs that may run at once.", state.concurrency);
  add("pulse_program_refused", "Whether new code of a program was refused, and old code goes on.",
      state.program_refusal.empty() ? 0 : 1);
  StateGauges gauges(families);
  if (state.databases.empty()) return gauges.add_all(state, now);
  for (const WorkerState& each : state.databases) {
    gauges.add("pulse_database_ready", "Whether this database can be served now.", each,
               why_not_ready(each, now).empty() ? 1 : 0);
    gauges.add_all(each, now);
  }
}

}  // namespace

// The fields of an event, by the names of a log line.
struct Metrics::Fields {
  Log::Fields all;

  template <typename Value>
  const Value* find(std::string_view key) const {
    for (const LogField& field : all) {
      if (field.key == key) return std::get_if<Value>(&field.value);
    }
    return nullptr;
  }
  std::string text(std::string_view key) const {
    const auto* value = find<std::string>(key);
    return value == nullptr ? std::string() : *value;
  }
  double number(std::string_view key) const {
    const auto* value = find<std::int64_t>(key);
    return value == nullptr ? 0 : static_cast<double>(*value);
  }
  // `own`, and the name of the database where the event has one.
  prometheus::Labels labels(prometheus::Labels own = {}) const {
    if (const auto* database = find<std::string>("database")) own["database"] = *database;
    return own;
  }
};

Metrics::Metrics(const std::string& version)
    : version_(version),
      claimed_(counters("pulse_jobs_claimed_total", "Jobs that were handed to this worker.")),
      finished_(counters("pulse_jobs_finished_total", "Claims that ended, by task and outcome.")),
      durations_(prometheus::BuildHistogram()
                     .Name("pulse_job_duration_seconds")
                     .Help("How long tasks ran that completed, failed or snoozed.")
                     .Register(registry_)),
      stale_(counters("pulse_stale_refusals_total",
                      "Outcomes that counted for nothing: the claim was over.")),
      unknown_(
          counters("pulse_unknown_outcomes_total", "Outcomes that may or may not have counted.")),
      heartbeat_failures_(
          counters("pulse_heartbeat_failures_total", "Beats and registrations without success.")),
      reconnects_(counters("pulse_reconnects_total",
                           "Connections that were lost or not to be had, by connection.")),
      losses_(counters("pulse_worker_losses_total", "Times this worker was declared lost.")),
      recovered_(counters("pulse_jobs_recovered_total",
                          "Jobs taken back from lost workers or overdue, by who found them.")),
      lost_workers_(
          counters("pulse_lost_workers_total", "Other workers found dead, by who found them.")),
      skipped_(counters("pulse_claims_skipped_total", "Spells in which nothing was claimed.")),
      dropped_(counters("pulse_log_lines_dropped_total", "Lines whose reader was too slow.")) {
  dropped_.Add({});
  prometheus::BuildGauge()
      .Name("pulse_build_info")
      .Help("Always 1; the label is the version.")
      .Register(registry_)
      .Add({{"version", version_}})
      .Set(1);
}

void Metrics::begin_database(const std::string& name) {
  prometheus::Labels labels;
  if (!name.empty()) labels["database"] = name;
  for (Counters* single : {&stale_, &unknown_, &heartbeat_failures_, &losses_, &skipped_}) {
    single->Add(labels);
  }
  for (Counters* by : {&recovered_, &lost_workers_}) {
    for (const char* finder : {"sweep", "host"}) {
      prometheus::Labels found = labels;
      found["by"] = finder;
      by->Add(found);
    }
  }
}

Metrics::Counters& Metrics::counters(const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
}

const std::unordered_map<std::string_view, Metrics::Take>& Metrics::takers() {
  static const std::unordered_map<std::string_view, Take> kTakers{
      {"claimed", &Metrics::take_claimed},
      {"completed", &Metrics::take_completed},
      {"failed", &Metrics::take_failed},
      {"cancelled", &Metrics::take_cancelled},
      {"snoozed", &Metrics::take_snoozed},
      {"released", &Metrics::take_released},
      {"interrupted", &Metrics::take_interrupted},
      {"revoked", &Metrics::take_revoked},
      {"stale", &Metrics::take_stale},
      {"unknown", &Metrics::take_unknown},
      {"unreportable", &Metrics::take_unknown},
      {"heartbeat_failed", &Metrics::take_heartbeat_failed},
      {"reconnecting", &Metrics::take_reconnecting},
      {"lost", &Metrics::take_lost},
      {"recovered", &Metrics::take_recovered},
      {"declared_lost", &Metrics::take_declared_lost},
      {"claim_skipped", &Metrics::take_claim_skipped},
      {"log_lines_dropped", &Metrics::take_dropped},
  };
  return kTakers;
}

void Metrics::take_event(std::string_view event, Log::Fields fields) {
  const auto taker = takers().find(event);
  if (taker != takers().end()) (this->*taker->second)(Fields{fields});
}

std::string Metrics::text(const Health::Seen& seen, TimePoint now) const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  add_state(families, seen, now);
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

Metrics::Task& Metrics::task(const Fields& fields) {
  std::string name = fields.text("task");
  const std::string database = fields.text("database");
  const auto key = [&] { return database.empty() ? name : name + '\n' + database; };
  if (tasks_.size() >= kMaxTasks && !tasks_.contains(key())) name = kOtherTasks;
  const auto [entry, is_new] = tasks_.try_emplace(key());
  if (is_new) {
    entry->second.labels = fields.labels({{"task", name}});
    entry->second.claimed = &claimed_.Add(entry->second.labels);
    entry->second.duration = &durations_.Add(entry->second.labels, kSeconds);
  }
  return entry->second;
}

void Metrics::take_claimed(const Fields& fields) {
  const std::lock_guard lock(mutex_);
  task(fields).claimed->Increment();
}

void Metrics::count_finished(const Fields& fields, std::string_view outcome, bool has_run) {
  const std::lock_guard lock(mutex_);
  Task& counted = task(fields);
  prometheus::Counter*& counter = counted.finished[outcome];
  if (counter == nullptr) {
    prometheus::Labels labels = counted.labels;
    labels["outcome"] = std::string(outcome);
    counter = &finished_.Add(labels);
  }
  counter->Increment();
  const auto* duration = fields.find<std::chrono::nanoseconds>("duration_ms");
  if (has_run && duration != nullptr) counted.duration->Observe(seconds(*duration));
}

void Metrics::take_completed(const Fields& fields) { count_finished(fields, "completed", true); }
void Metrics::take_failed(const Fields& fields) { count_finished(fields, "failed", true); }
void Metrics::take_cancelled(const Fields& fields) { count_finished(fields, "cancelled", true); }
void Metrics::take_snoozed(const Fields& fields) { count_finished(fields, "snoozed", true); }
void Metrics::take_released(const Fields& fields) { count_finished(fields, "released", false); }
void Metrics::take_revoked(const Fields& fields) { count_finished(fields, "revoked", false); }
void Metrics::take_interrupted(const Fields& fields) {
  count_finished(fields, "interrupted", false);
}

void Metrics::take_stale(const Fields& fields) { stale_.Add(fields.labels()).Increment(); }
void Metrics::take_unknown(const Fields& fields) { unknown_.Add(fields.labels()).Increment(); }
void Metrics::take_lost(const Fields& fields) { losses_.Add(fields.labels()).Increment(); }
void Metrics::take_claim_skipped(const Fields& fields) {
  skipped_.Add(fields.labels()).Increment();
}
void Metrics::take_heartbeat_failed(const Fields& fields) {
  heartbeat_failures_.Add(fields.labels()).Increment();
}

void Metrics::take_reconnecting(const Fields& fields) {
  reconnects_.Add(fields.labels({{"connection", fields.text("connection")}})).Increment();
}

void Metrics::take_recovered(const Fields& fields) {
  recovered_.Add(fields.labels({{"by", "sweep"}})).Increment(fields.number("jobs"));
  lost_workers_.Add(fields.labels({{"by", "sweep"}})).Increment(fields.number("workers_lost"));
}

void Metrics::take_declared_lost(const Fields& fields) {
  recovered_.Add(fields.labels({{"by", "host"}})).Increment(fields.number("jobs"));
  lost_workers_.Add(fields.labels({{"by", "host"}})).Increment();
}

void Metrics::take_dropped(const Fields& fields) {
  dropped_.Add({}).Increment(fields.number("count"));
}

}  // namespace pulse
