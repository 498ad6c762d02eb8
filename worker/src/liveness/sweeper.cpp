#include "liveness/sweeper.hpp"

#include <cmath>

#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswerDeadline = 15s;

// Workers that were started together drift apart, and never beyond the interval.
constexpr double kMin = 0.8;

}  // namespace

Sweeper::Sweeper(Session& session, Timers& timers, Random random, Log& log)
    : session_(session),
      timers_(timers),
      random_(std::move(random)),
      log_(log),
      next_sweep_(timers, [this] { end_interval(); }) {
  session_.add_sender([this] { return send_next(); });
}

void Sweeper::start(const Registration& registration) {
  interval_ = registration.sweep_interval;
  is_left_ = false;
  schedule();
}

void Sweeper::stop() {
  interval_.reset();
  is_wanted_ = false;
  next_sweep_.stop();
}

void Sweeper::end_interval() {
  if (is_left_)
    schedule();
  else
    sweep_now();
}

void Sweeper::sweep_now() {
  if (!interval_) return;
  is_wanted_ = true;
  session_.wake_if_free();
}

std::optional<TimePoint> Sweeper::next_sweep() const {
  if (is_left_ || !next_sweep_.is_running()) return std::nullopt;
  return next_sweep_.due();
}

bool Sweeper::send_next() {
  if (!is_wanted_) return false;
  is_wanted_ = false;
  schedule();
  session_.send(statements::kSweep, {}, kAnswerDeadline,
                [this](const Reply& reply) { take_report(reply); });
  return true;
}

void Sweeper::take_report(const Reply& reply) {
  const auto* rows = std::get_if<QueryResult>(&reply);
  if (rows == nullptr) {
    const auto* error = std::get_if<SqlError>(&reply);
    const auto* lost = std::get_if<ConnectionLost>(&reply);
    const std::string& reason = error == nullptr ? lost->reason : error->message;
    log_.write(failures_.level_of(reason, timers_.now()), "sweep_failed",
               {{"sqlstate", error == nullptr ? "" : error->sqlstate}, {"reason", reason}});
    return;
  }
  failures_.forget();
  if (rows->empty()) return;
  const QueryResult::Row row = (*rows)[0];
  // Jobs that timed out or stalled are among the recovered jobs.
  const std::int64_t recovered =
      row.integer("jobs_requeued") + row.integer("jobs_failed") + row.integer("jobs_quarantined");
  const Duration skipped = row.optional_seconds("skipped_time").value_or(Duration::zero());
  const std::int64_t workers_lost = row.integer("workers_lost");
  const bool found_something = workers_lost + recovered > 0;
  log_.write(found_something ? LogLevel::info : LogLevel::debug,
             found_something ? "recovered" : "sweep",
             {{"workers_lost", workers_lost},
              {"jobs", recovered},
              {"requeued", row.integer("jobs_requeued")},
              {"failed", row.integer("jobs_failed")},
              {"quarantined", row.integer("jobs_quarantined")},
              {"timed_out", row.integer("jobs_timed_out")},
              {"stalled", row.integer("jobs_stalled")},
              {"skipped_locked", row.integer("jobs_skipped_locked")},
              {"skipped_ms", skipped.count()}});
  if (workers_lost > 0 && on_workers_lost) on_workers_lost();
  if (found_something) sweep_now();  // the rest is left to the next transaction
}

void Sweeper::schedule() {
  if (!interval_) return;
  const double part = kMin + (1.0 - kMin) * random_();
  next_sweep_.start_in(std::chrono::nanoseconds(
      std::llround(part * static_cast<double>(std::chrono::nanoseconds(*interval_).count()))));
}

}  // namespace pulse
