#include "claim/claimer.hpp"

#include <algorithm>
#include <utility>

#include "base/postgres/array_literal.hpp"
#include "base/postgres/sqlstate.hpp"
#include "liveness/aligned.hpp"
#include "session/refusal.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWaitSlack = 5s;
// This and the slack bound how long a connection goes unnoticed that has stalled without an end.
// The bound is not shorter because an idle worker claims after each wait.
constexpr Duration kMaxWait = 10s;
constexpr Duration kMinWait = 100ms;  // before an errand
constexpr Duration kMinAlignedWait = 2s;
// How long a worker that stops waits for a cancelled wait, and for the answer to a claim.
constexpr Duration kCancelPatience = 500ms;
constexpr Duration kClaimPatience = 3s;
// While something is held: a job that is only given to a worker that holds nothing is not announced
// to a worker that became idle during the wait.
constexpr Duration kWaitWhileBusy = 5s;
constexpr Duration kFirstClaimPause = 100ms;
constexpr Duration kMaxClaimPause = 5s;
constexpr Duration kClaimsOffPause = 5s;
// A wait that ends sooner than this waited for nothing; after a few in a row something is odd.
constexpr Duration kQuickWait = 2ms;
constexpr int kMaxQuickWaits = 3;

constexpr const char* kNoBeat = "no good heartbeat lately";

}  // namespace

Claimer::Claimer(ClaimerConfig config, Session& session, Heartbeat& heartbeat, HeldJobs& held,
                 Finisher& finisher, Timers& timers, Log& log)
    : config_(std::move(config)),
      session_(session),
      heartbeat_(heartbeat),
      held_(held),
      finisher_(finisher),
      timers_(timers),
      log_(log),
      prefetch_(config_.prefetch),
      bound_(config_.max_held_bytes),
      holding_off_(timers, [this] { session_.wake(); }),
      next_poll_(timers, [this] { reconsider(); }),
      prefetch_limit_(timers, [this] { release_overdue(); }),
      leaving_(timers, [this] { stop_waiting(); }) {
  session_.add_sender([this] { return send_next(); });
}

void Claimer::reconsider() {
  has_no_prefetch_ = false;
  // A queue's next job may have come with the end of the last, and no wait tells of the next job.
  if (config_.once || !may_wait()) found_nothing_ = false;
  // The wait may be for a job that no worker without a free slot gets.
  if ((!was_for_slots_ && terms().demand.start_jobs > 0) || has_more_shares()) {
    found_nothing_ = false;
    cancel_wait();
  }
  session_.wake();
}

void Claimer::hold_off(Duration pause, const std::string& reason) {
  skip(reason);
  holding_off_.start_in(pause);
}

void Claimer::serve(std::vector<std::string> tasks) {
  tasks_ = std::move(tasks);
  cancel_wait();  // the wait would not wake for a new task
  reconsider();
}

void Claimer::stop() {
  is_stopping_ = true;
  for (const ClaimKey claim : waiting_jobs()) {
    if (may_go_back(claim)) finisher_.add(Outcome::released(claim, "draining"));
  }
  cancel_wait();
  leaving_.start_in(activity_ == Activity::waiting ? kCancelPatience : kClaimPatience);
}

// A cancel request needs a second connection, which may be refused or go to another server. The
// jobs of an unanswered claim are asked for once more.
void Claimer::stop_waiting() {
  if (activity_ == Activity::claiming) leaving_.start_in(kClaimPatience);
  if (activity_ != Activity::none) session_.drop("no answer within the patience of a stop");
  become_quiet();
}

bool Claimer::send_next() {
  if (!heartbeat_.is_established() || holding_off_.is_running()) return false;
  if (doubt_since_) {
    // A job that two lists give back must not be in the answer: its end would be reported twice.
    if (heartbeat_.is_naming_jobs()) return false;  // the beat's answer wakes the claimer
    send_check();
    return true;
  }
  if (is_stopping_ || !may_claim()) return false;
  const ShareRota::Terms wanted = terms();
  const bool must_wait = is_wait_due(wanted.demand);
  if (wanted.demand.max_jobs == 0 && !must_wait) {
    if (on_passed && whole_demand().max_jobs > 0) on_passed();
    return false;
  }
  if (must_wait) {
    if (config_.once) return false;
    if (session_.ask_borrower()) return true;
    if (may_wait()) return send_wait();
    if (!next_poll_.is_running()) next_poll_.start_in(heartbeat_.registration()->poll_interval);
    return false;
  }
  send_claim(wanted);
  return true;
}

void Claimer::claim_if_due() {
  if (!session_.is_free() || !heartbeat_.is_established() || holding_off_.is_running()) return;
  if (doubt_since_ || is_stopping_ || !heartbeat_.is_fresh()) return;
  const ShareRota::Terms wanted = terms();
  if (wanted.demand.max_jobs > 0 && !is_wait_due(wanted.demand)) send_claim(wanted);
}

// A worker that cannot beat does not claim.
bool Claimer::may_claim() {
  if (heartbeat_.is_fresh()) {
    if (last_skip_ == kNoBeat) last_skip_.clear();
    return true;
  }
  skip(kNoBeat);
  heartbeat_.beat_now();  // the beat's answer wakes the claimer
  return false;
}

Demand Claimer::whole_demand() const {
  const std::size_t waiting = held_.count(HeldJob::State::prefetched);
  const std::size_t held = held_.count(HeldJob::State::running) +
                           held_.count(HeldJob::State::revoked) + waiting +
                           (elsewhere ? elsewhere().held : 0);
  const std::size_t concurrency = slots ? slots() : config_.concurrency;
  const Slots counted{.concurrency = concurrency,
                      .batch_slots = config_.batch_slots,
                      .extra = extra_jobs ? extra_jobs() : 0,
                      .held = held,
                      .in_use = slots_in_use ? slots_in_use() + waiting : held,
                      .target = prefetch_.target(concurrency + config_.batch_slots),
                      .has_no_prefetch = has_no_prefetch_};
  const Demand whole = bound_.within(demand_for(counted), taken_bytes());
  // A wait takes no slot.
  return part_of && !is_wait_due(whole) ? part_of(whole) : whole;
}

ShareRota::Terms Claimer::terms() const {
  return rota_.next(whole_demand(), shares ? shares() : std::vector<TaskShare>());
}

void Claimer::send_claim(const ShareRota::Terms& terms) {
  activity_ = Activity::claiming;
  was_for_slots_ = terms.demand.start_jobs > 0;
  const std::int64_t worker_id = heartbeat_.registration()->worker_id;
  const TimePoint sent_at = timers_.now();
  sent_at_ = sent_at;
  const bool held_nothing = held_.empty();
  if (on_asking) on_asking(terms);
  const auto& names = terms.tasks ? terms.tasks : tasks_;
  const auto tasks = names ? std::optional(array_literal(*names)) : std::nullopt;
  Calls calls;
  std::vector<ReplyHandler> handlers;
  Commit commit = Commit::each;
  if (auto outcomes = finisher_.take_with_claim()) {
    commit = outcomes->commit;
    calls.push_back(std::move(outcomes->call));
    handlers.push_back(std::move(outcomes->take_reply));
  }
  calls.push_back({lost_.next_claim(),
                   {std::to_string(worker_id), std::to_string(terms.demand.max_jobs), tasks,
                    std::to_string(terms.demand.start_jobs)},
                   bound_.free_bytes(taken_bytes())});
  handlers.emplace_back([=, this](Reply reply) {
    activity_ = Activity::none;
    patience_.claim_took(timers_.now() - sent_at, std::holds_alternative<QueryResult>(reply));
    const auto* jobs = std::get_if<QueryResult>(&reply);
    if (on_answered) on_answered(jobs != nullptr ? jobs->size() : 0);
    take_claim(terms, worker_id, sent_at, held_nothing, reply);
    become_quiet();
  });
  session_.send(std::move(calls), commit, patience_.duration(), std::move(handlers));
}

void Claimer::take_claim(const ShareRota::Terms& terms, std::int64_t worker_id, TimePoint sent_at,
                         bool held_nothing, Reply& reply) {
  const Demand& demand = terms.demand;
  if (const auto* lost = std::get_if<ConnectionLost>(&reply)) {
    doubt_since_ = sent_at;
    if (lost_.take(demand.max_jobs, *lost, log_)) bound_.expect_largest();
    return;
  }
  if (std::holds_alternative<RolledBack>(reply)) return;  // the outcomes were refused
  if (const auto* error = std::get_if<SqlError>(&reply))
    return take_refusal("claim", worker_id, *error);
  pause_ = Duration::zero();
  last_skip_.clear();
  const bool was_woken = std::exchange(was_woken_, false);
  QueryResult& rows = std::get<QueryResult>(reply);
  rota_.take_answer(terms, rows.size());
  if (rows.empty() && !terms.is_for_all) return;
  if (rows.empty()) {
    // Not for a job, then: one that runs is cancelled, or this worker is told to drain.
    if (was_woken) heartbeat_.beat_now();
    // With --once, the jobs held when the claim was sent may have ended since, and no later event
    // asks again.
    const bool ended_since = config_.once && !held_nothing && held_.empty();
    found_nothing_ = demand.is_awaited && !ended_since;
    has_no_prefetch_ = !demand.is_awaited;
    if (config_.once && held_nothing && on_exhausted) on_exhausted();
    return;
  }
  found_nothing_ = false;
  quick_waits_ = 0;
  prefetch_.claim_took(timers_.now() - sent_at);
  // Fewer than asked for: the rest of a prefetch is not to be had now.
  has_no_prefetch_ = rows.size() < demand.max_jobs;
  take_jobs(rows, worker_id, sent_at);
}

void Claimer::take_jobs(QueryResult& rows, std::int64_t worker_id, TimePoint sent_at) {
  const auto& registration = heartbeat_.registration();
  const bool is_current = registration && registration->worker_id == worker_id;
  const bool is_bare = lost_.take_bare();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_bare) bound_.take_size(rows[i].bytes());
    const std::int64_t size = is_bare ? rows[i].integer("payload") : 0;
    Job job = take_job(rows, i);
    job.input.worker_id = worker_id;
    job.input.worker_name = config_.worker_name;
    job.input.database = config_.database;
    log_.info("claimed", {{"job", job.input.job_id},
                          {"task", job.input.identifier},
                          {"attempt", job.input.attempt},
                          {"worker", worker_id},
                          {"trace_id", job.input.trace_id()}});
    const ClaimKey claim = job.key();
    if (!take_up(std::move(job), worker_id, sent_at)) continue;
    if (is_stopping_ || !is_current) {
      finisher_.add(Outcome::released(claim, is_stopping_ ? "draining" : "worker lost"));
    } else if (is_bare) {
      finisher_.add(lost_.end_of_bare(claim, size, config_.worker_name));
    } else if (rows[i].is_cut()) {
      finisher_.add(Outcome::released(claim, "no bytes left for its payload"));
    }
  }
  if (on_claimed) on_claimed();
  if (!take_back) {
    release_overdue();
  } else if (registration && !prefetch_limit_.is_running()) {
    // Jobs that have just been queued are about to begin, however long their claim took.
    prefetch_limit_.start_in(registration->heartbeat_interval / 2);
  }
}

// False: this very claim is held already.
bool Claimer::take_up(Job job, std::int64_t worker_id, TimePoint sent_at) {
  const ClaimKey claim = job.key();
  HeldJob* held = held_.add(std::move(job), worker_id, sent_at);
  if (held == nullptr) return false;
  held->arrived_at = timers_.now();
  for (const ClaimKey earlier : held_.earlier_claims(claim)) {
    if (on_superseded) on_superseded(earlier);
  }
  return true;
}

bool Claimer::send_wait() {
  activity_ = Activity::waiting;
  const std::int64_t worker_id = heartbeat_.registration()->worker_id;
  const TimePoint sent_at = timers_.now();
  Duration max_wait = held_.empty() ? kMaxWait : kWaitWhileBusy;
  if (config_.is_one_of_many && held_.empty()) {
    max_wait = std::chrono::ceil<Duration>(aligned(sent_at + kMaxWait + kMinAlignedWait, kMaxWait) -
                                           sent_at);
  }
  if (const auto errand = next_errand ? next_errand() : std::nullopt) {
    max_wait = std::clamp(std::chrono::ceil<Duration>(*errand - sent_at), kMinWait, max_wait);
  }
  session_.send(statements::kWaitForJob, {std::to_string(worker_id), interval_param(max_wait)},
                max_wait + kWaitSlack, [=, this](const Reply& reply) {
                  activity_ = Activity::none;
                  take_wait(worker_id, sent_at, reply);
                  become_quiet();
                });
  return true;
}

void Claimer::take_wait(std::int64_t worker_id, TimePoint sent_at, const Reply& reply) {
  found_nothing_ = false;
  if (is_stopping_) return;
  const auto* error = std::get_if<SqlError>(&reply);
  const bool was_cancelled = error != nullptr && error->sqlstate == sqlstate::kQueryCanceled;
  if (error != nullptr && !was_cancelled) return take_refusal("wait_for_job", worker_id, *error);
  // Woken, perhaps not for a job: if the next claim brings none, a beat may tell more.
  was_woken_ = error == nullptr && !held_.empty() && timers_.now() - sent_at < kWaitWhileBusy;
  if (timers_.now() - sent_at > kQuickWait) {
    quick_waits_ = 0;
  } else if (++quick_waits_ > kMaxQuickWaits) {
    // Perhaps this worker is told to drain: the next beat says so.
    heartbeat_.beat_now();
    holding_off_.start_in(
        std::min(kFirstClaimPause * (quick_waits_ - kMaxQuickWaits), kMaxClaimPause));
  }
}

void Claimer::send_check() {
  activity_ = Activity::checking;
  const TimePoint sent_at = timers_.now();
  const std::int64_t worker_id = heartbeat_.registration()->worker_id;
  // Jobs that end until the answer comes may still be in the answer.
  const std::vector<ClaimKey> known = held_.claims_of(worker_id);
  session_.send(statements::kHeld, {std::to_string(worker_id)}, patience_.duration(),
                [this, worker_id, known, sent_at](const Reply& reply) {
                  activity_ = Activity::none;
                  patience_.claim_took(timers_.now() - sent_at, false);
                  take_check(worker_id, known, reply);
                  become_quiet();
                });
}

void Claimer::take_check(std::int64_t worker_id, const std::vector<ClaimKey>& known,
                         const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) return;
  if (const auto* error = std::get_if<SqlError>(&reply))
    return take_refusal("held", worker_id, *error);
  doubt_since_.reset();
  const QueryResult& rows = std::get<QueryResult>(reply);
  std::int64_t released = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Job job = job_of(rows[i]);
    const ClaimKey claim = job.key();
    if (std::binary_search(known.begin(), known.end(), claim) || held_.has_left(claim)) continue;
    if (!take_up(std::move(job), worker_id, timers_.now())) continue;
    finisher_.add(lost_.end_of(claim, config_.worker_name));
    ++released;
  }
  lost_.take_found(released);
  log_.info("reconciled", {{"worker", worker_id},
                           {"held", static_cast<std::int64_t>(rows.size())},
                           {"released", released}});
}

void Claimer::take_refusal(const char* statement, std::int64_t worker_id, const SqlError& error) {
  if (is_late_cancellation(error)) return;
  if (error.sqlstate == sqlstate::kWorkerIsLost) {
    doubt_since_.reset();  // the claimed jobs are being recovered
    heartbeat_.take_refused(worker_id, error.message);
    return;
  }
  pause_ = error.sqlstate == sqlstate::kClaimsAreOff
               ? kClaimsOffPause
               : std::clamp(pause_ * 2, kFirstClaimPause, kMaxClaimPause);
  holding_off_.start_in(pause_);
  skip(std::string(statement) + ": " + error.sqlstate + " " + refusal_text(error, session_));
  const bool needs_operator =
      error.sqlstate == sqlstate::kClaimsAreOff || error.sqlstate == sqlstate::kNoPrivilege;
  if (config_.once && needs_operator && on_refused) on_refused(last_skip_);
}

void Claimer::skip(const std::string& reason) {
  if (reason == last_skip_) return;
  last_skip_ = reason;
  log_.warning("claim_skipped", {{"reason", reason}});
}

}  // namespace pulse
