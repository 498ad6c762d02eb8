#include "load.hpp"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

constexpr int kRegisteredTogether = 500;
// Until then each session plans its beat anew.
constexpr int kSettlingBeats = 6;
constexpr auto kLook = std::chrono::milliseconds(1);

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Load::Load(const LoadOptions& options)
    : options_(options), session_("bench-load"), meter_(&session_) {}

void Load::run() {
  Moment start = Clock::now();
  register_workers();
  connect();
  std::printf("{\"connect_seconds\": %.3f", milliseconds(Clock::now() - start) / 1000);
  if (options_.idle_seconds > 0) idle();
  if (options_.seconds > 0 || options_.jobs > 0) send_jobs();
  stop();
  std::int64_t lost = session_.number(
      "SELECT count(*) FROM pulse.worker WHERE id = ANY ($1) AND state = 'lost'", {all_workers_});
  session_.run("SELECT count(pulse.deregister_worker(id)) FROM unnest($1::bigint[]) AS id",
               {all_workers_});
  std::printf(", \"lost\": %lld, \"refused_beats\": %lld}\n", static_cast<long long>(lost),
              static_cast<long long>(beats_->refused()));
}

void Load::register_workers() {
  int left = options_.workers + options_.beating;
  for (; left > 0; left -= kRegisteredTogether) {
    Rows rows = session_.run(
        "SELECT w.id FROM generate_series(1, $1::int) AS i, LATERAL pulse.register_worker("
        "'load-' || i, ARRAY[$2], NULL, $3::int * interval '1 ms') AS w",
        {std::int64_t{std::min(left, kRegisteredTogether)}, options_.producers.task,
         std::int64_t{options_.beat_ms}});
    for (int i = 0; i < rows.count(); i++) all_workers_.push_back(rows.number(i, 0));
  }
  waiting_workers_.assign(all_workers_.begin(), all_workers_.begin() + options_.workers);
}

// Beats start before the sessions of claimers are there: a thousand of them take seconds.
void Load::connect() {
  auto interval = std::chrono::milliseconds(options_.beat_ms);
  beats_ = std::make_unique<Beats>(&loop_, all_workers_, options_.beat_sessions, interval,
                                   options_.workers == 0);
  beats_->start();
  Claimer::Listener* listener = this;
  for (std::int64_t id : waiting_workers_) {
    claimers_.push_back(
        std::make_unique<Claimer>(&loop_, id, options_.claimer, &claims_, listener));
    if (claimers_.size() % 100 == 0) run_for(0.001);
  }
  producers_ = std::make_unique<Producers>(&loop_, options_.producers);
}

// Waits that began together would end together.
void Load::start_claimers(double spread_seconds) {
  if (are_claiming_) return;
  are_claiming_ = true;
  Moment now = Clock::now();
  double apart = spread_seconds / static_cast<double>(claimers_.size());
  for (std::size_t i = 0; i < claimers_.size(); i++)
    loop_.at(now + duration_of(apart * static_cast<double>(i)),
             [claimer = claimers_[i].get()] { claimer->start(); });
}

void Load::run_for(double seconds) {
  loop_.at(Clock::now() + duration_of(seconds), [this] { loop_.stop(); });
  loop_.run();
}

void Load::idle() {
  double settling_seconds = kSettlingBeats * options_.beat_ms / 1000.0;
  start_claimers(settling_seconds);
  run_for(settling_seconds);
  begin_phase();
  run_for(options_.idle_seconds);
  std::string done = end_phase();
  std::printf(", \"idle\": {%s%s}", done.c_str(), latencies_json().c_str());
}

void Load::send_jobs() {
  bool has_producers = options_.producers.sessions > 0;
  if (options_.warm_seconds > 0) {
    start_claimers();
    if (has_producers) producers_->start();
    run_for(options_.warm_seconds);
  }
  begin_phase();
  if (options_.slice_seconds > 0)
    end_slice(phase_start_.moment + duration_of(options_.slice_seconds));
  if (options_.jobs > 0) {
    jobs_wanted_ = claims_.jobs + options_.jobs;
    producers_->limit(options_.jobs);
    if (!has_producers) claims_.left = options_.jobs;
  }
  start_claimers();
  if (has_producers && options_.warm_seconds <= 0) producers_->start();
  if (options_.seconds > 0)
    run_for(options_.seconds);
  else
    loop_.run();
  jobs_wanted_ = 0;
  std::string done = end_phase();
  if (has_producers) finish_schedule();
  std::printf(", \"jobs\": {%s%s", done.c_str(), latencies_json().c_str());
  for (std::size_t i = 0; i < slices_.size(); i++)
    std::printf("%s{\"jobs\": %lld, \"start\": %s}", i == 0 ? ", \"slices\": [" : ", ",
                static_cast<long long>(slices_[i].jobs), slices_[i].start.c_str());
  std::printf("%s}", slices_.empty() ? "" : "]");
}

// Jobs that were scheduled and have not started count too: they waited longest. The next run finds
// none of them.
void Load::finish_schedule() {
  producers_->stop();
  while (!producers_->is_at_rest() || claims_.jobs < producers_->added())
    run_for(milliseconds(kLook) / 1000);
}

void Load::end_slice(Moment end) {
  slice_jobs_ = claims_.jobs;
  slice_starts_.begin(Clock::now());
  loop_.at(end, [this, end] {
    slices_.push_back({claims_.jobs - slice_jobs_, slice_starts_.json()});
    end_slice(end + duration_of(options_.slice_seconds));
  });
}

// What is held is ended; sessions that wait are left to their waits.
void Load::stop() {
  producers_->stop();
  for (auto& claimer : claimers_) claimer->stop();
  auto is_at_rest = [](const auto& claimer) { return claimer->is_at_rest(); };
  while (!producers_->is_at_rest() || !std::ranges::all_of(claimers_, is_at_rest))
    run_for(milliseconds(kLook) / 1000);
}

void Load::on_start(std::string_view payload) {
  if (options_.producers.sessions == 0) return;
  Moment scheduled = Producers::scheduled(payload);
  starts_.add(scheduled);
  if (options_.slice_seconds > 0) slice_starts_.add(scheduled);
}

void Load::on_end() {
  if (jobs_wanted_ > 0 && claims_.jobs >= jobs_wanted_) loop_.stop();
}

void Load::begin_phase() {
  phase_claims_ = claims_;
  phase_beats_ = beats_->count();
  phase_added_ = producers_->added();
  phase_start_ = meter_.read();
  // What was due before waited for the reading, which looks at each process of the server.
  starts_.begin(phase_start_.moment);
  beats_->latencies().begin(phase_start_.moment);
}

std::string Load::end_phase() {
  // Counted before the reading, which takes its time with thousands of sessions.
  Claims now = claims_;
  std::int64_t beats = beats_->count() - phase_beats_;
  std::int64_t added = producers_->added() - phase_added_;
  Reading end = meter_.read();
  std::string text = used_json(phase_start_, end);
  auto put = [&text](const char* name, std::int64_t value) {
    text += std::string(", \"") + name + "\": " + std::to_string(value);
  };
  put("jobs", now.jobs - phase_claims_.jobs);
  put("added", added);
  put("failures", now.failures - phase_claims_.failures);
  put("claims", now.claims - phase_claims_.claims);
  put("empty_claims", now.empty_claims - phase_claims_.empty_claims);
  put("beats", beats);
  return text;
}

std::string Load::latencies_json() {
  return ", \"start\": " + starts_.json() + ", \"beat\": " + beats_->latencies().json();
}

}  // namespace bench
