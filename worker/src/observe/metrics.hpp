// Metrics: counts logged events, and tells the counts in Prometheus' text format. Events come from
// the loop, or any thread; a scrape comes from another thread and holds a lock no longer than
// copying a number takes.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/log/log.hpp"
#include "observe/health.hpp"

namespace pulse {

class Metrics {
 public:
  explicit Metrics(const std::string& version);

  // Begins the series of a database at zero. With a name, each series of jobs, claims, beats and
  // connections has a label `database`. From any thread.
  void begin_database(const std::string& name);
  // For Log::listen().
  void take_event(std::string_view event, Log::Fields fields);
  std::string text(const Health::Seen& seen, TimePoint now) const;

 private:
  using Counters = prometheus::Family<prometheus::Counter>;
  using Histograms = prometheus::Family<prometheus::Histogram>;

  // Of one task of one database. An outcome that never happened to the task has no line.
  struct Task {
    prometheus::Labels labels;
    prometheus::Counter* claimed = nullptr;
    prometheus::Histogram* duration = nullptr;
    std::unordered_map<std::string_view, prometheus::Counter*> finished;  // by outcome
  };

  struct Fields;
  using Take = void (Metrics::*)(const Fields& fields);
  static const std::unordered_map<std::string_view, Take>& takers();

  Counters& counters(const char* name, const char* help);
  Task& task(const Fields& fields);
  void count_finished(const Fields& fields, std::string_view outcome, bool has_run);

  void take_claimed(const Fields& fields);
  void take_completed(const Fields& fields);
  void take_failed(const Fields& fields);
  void take_cancelled(const Fields& fields);
  void take_snoozed(const Fields& fields);
  void take_released(const Fields& fields);
  void take_interrupted(const Fields& fields);
  void take_revoked(const Fields& fields);
  void take_stale(const Fields& fields);
  void take_unknown(const Fields& fields);
  void take_heartbeat_failed(const Fields& fields);
  void take_reconnecting(const Fields& fields);
  void take_lost(const Fields& fields);
  void take_recovered(const Fields& fields);
  void take_declared_lost(const Fields& fields);
  void take_claim_skipped(const Fields& fields);
  void take_dropped(const Fields& fields);

  const std::string version_;
  prometheus::Registry registry_;
  Counters& claimed_;
  Counters& finished_;
  Histograms& durations_;
  Counters& stale_;
  Counters& unknown_;
  Counters& heartbeat_failures_;
  Counters& reconnects_;
  Counters& losses_;
  Counters& recovered_;
  Counters& lost_workers_;
  Counters& skipped_;
  Counters& dropped_;
  std::mutex mutex_;
  std::unordered_map<std::string, Task> tasks_;  // by task and database; guarded by mutex_
};

}  // namespace pulse
