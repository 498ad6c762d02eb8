#include "charts/depth.hpp"

#include "html/moment.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr std::int64_t kSlot = 10'000'000;  // microseconds
constexpr std::int64_t kSlots = 60;

}  // namespace

void Depth::note(const QueryResult::Row& overview) {
  const auto at = microseconds_of(overview.text("at"));
  if (!at) return;
  const auto count = [&](const char* field) {
    return static_cast<double>(overview.optional_integer(field).value_or(0));
  };
  const Sample sample{*at / kSlot, count("ready"), count("running"),
                      count("parked_full") + count("parked_paused")};
  const std::lock_guard lock(mutex_);
  if (!samples_.empty() && sample.slot < samples_.back().slot) samples_.clear();  // another clock
  if (!samples_.empty() && samples_.back().slot == sample.slot) samples_.pop_back();
  samples_.push_back(sample);
  while (samples_.front().slot <= sample.slot - kSlots) samples_.pop_front();
  at_ = overview.text("at");
}

Chart Depth::chart() const {
  Chart chart{"Depth",
              {},
              {},
              [](double jobs) {
                return spell_count(std::to_string(static_cast<std::int64_t>(jobs))); },
              false,
              true};
  Series ready{"ready", "first", std::vector<std::optional<double>>(kSlots)};
  Series running{"running", "second", ready.values};
  Series parked{"behind queues", "third", ready.values};
  const std::lock_guard lock(mutex_);
  if (samples_.empty()) return chart;
  const std::int64_t first = samples_.back().slot - kSlots + 1;
  for (const Sample& sample : samples_) {
    const auto place = static_cast<std::size_t>(sample.slot - first);
    ready.values[place] = sample.ready;
    running.values[place] = sample.running;
    parked.values[place] = sample.parked;
  }
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    const std::int64_t back = (kSlots - 1 - slot) * kSlot / 1'000'000;
    chart.moments.push_back(clock_before(at_, back));
    chart.instants.push_back(
        utc_of(microseconds_of(at_).value_or(0) - back * std::int64_t{1'000'000}));
  }
  chart.series = {std::move(ready), std::move(running), std::move(parked)};
  return chart;
}

}  // namespace pulse::console
