#include "jobs/finisher.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/postgres/sqlstate.hpp"
#include "jobs/outcome_statement.hpp"
#include "session/refusal.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxJobs = 500;
constexpr std::size_t kMaxBytes = 4 * 1024 * 1024;
constexpr Duration kEndDeadline = 15s;
constexpr Duration kFirstBusyPause = 20ms;
constexpr Duration kMaxBusyPause = 1s;
constexpr Duration kFirstEndPause = 100ms;
constexpr Duration kMaxEndPause = 5s;

bool is_live(const std::string& state) {
  return state == "ready" || state == "parked" || state == "running";
}

std::size_t size_of(const Outcome& outcome) {
  return outcome.error.size() + (outcome.result ? outcome.result->size() : 0) +
         (outcome.payload ? outcome.payload->size() : 0);
}

}  // namespace

Finisher::Finisher(Session& session, Heartbeat& heartbeat, HeldJobs& held, Timers& timers, Log& log)
    : session_(session),
      heartbeat_(heartbeat),
      held_(held),
      timers_(timers),
      log_(log),
      retry_(timers, [this] { session_.wake(); }),
      progress_retry_(timers, [this] { session_.wake(); }) {
  session_.add_sender([this] { return send_next(); });
}

void Finisher::add(Outcome outcome) {
  if (!held_.end(outcome.claim)) return;
  Pending pending{std::move(outcome)};
  pending.was_sent = pending.outcome.is_unsure;
  waiting_.push_back(std::move(pending));
  session_.wake();
}

void Finisher::note_completed(Outcome outcome) {
  progress_.erase(outcome.claim);
  conclude(outcome, "completed", counters_.completed, LogLevel::info);
  if (on_answered) on_answered();
}

void Finisher::report_progress(ClaimKey claim, const TaskProgress& progress) {
  progress_[claim].take_newer(progress);
  session_.wake();
}

void Finisher::revoke(ClaimKey claim) {
  progress_.erase(claim);
  const auto pending = std::find_if(waiting_.begin(), waiting_.end(), [&](const Pending& each) {
    return each.outcome.claim == claim && !each.was_sent;
  });
  if (pending == waiting_.end()) return;
  conclude(pending->outcome, "stale", counters_.stale, LogLevel::warning);
  waiting_.erase(pending);
  if (on_answered) on_answered();
}

bool Finisher::send_next() {
  if (waiting_.empty() && progress_.empty()) return false;
  if (!heartbeat_.is_fresh()) {
    heartbeat_.beat_now();  // the beat's answer wakes the finisher
    return false;
  }
  if (on_sending) on_sending();
  if (!session_.is_free()) return true;  // the claim went over this very connection
  // Alternately, so that neither starves the other.
  if (was_progress_last_) return send_outcomes() || send_progress();
  return send_progress() || send_outcomes();
}

// Claims whose job has ended come first: their outcomes wait for progress. Then the rest, from the
// claim after the last.
std::vector<ClaimKey> Finisher::next_progress() const {
  std::vector<ClaimKey> ended;
  std::vector<ClaimKey> others;
  const auto next = progress_.upper_bound(last_progress_);
  const auto take = [&](auto from, auto to) {
    for (; from != to; ++from) {
      const HeldJob* job = held_.find(from->first);
      const bool has_ended = job != nullptr && job->state == HeldJob::State::ended;
      (has_ended ? ended : others).push_back(from->first);
    }
  };
  take(next, progress_.end());
  take(progress_.begin(), next);
  ended.insert(ended.end(), others.begin(), others.end());
  return ended;
}

bool Finisher::send_progress() {
  if (progress_retry_.is_running()) return false;
  Calls calls;
  std::vector<ReplyHandler> handlers;
  std::size_t bytes = 0;
  // A pooler gets one statement at a time, as it likes best.
  const std::size_t most = session_.is_pooled() ? 1 : kMaxJobs;
  for (const ClaimKey claim : next_progress()) {
    bytes += progress_.at(claim).checkpoint.value_or("").size();
    if (calls.size() == most || (bytes > kMaxBytes && !calls.empty())) break;
    const TaskProgress progress = std::move(progress_.extract(claim).mapped());
    calls.push_back({statements::kProgress, progress_params(claim, progress)});
    reporting_.insert(claim);
    handlers.emplace_back([this, claim, progress](const Reply& reply) {
      reporting_.erase(claim);
      take_progress_reply(claim, progress, reply);
    });
    last_progress_ = claim;
  }
  if (calls.empty()) return false;
  was_progress_last_ = true;
  session_.send(std::move(calls), Commit::each, kEndDeadline, std::move(handlers));
  return true;
}

void Finisher::take_progress_reply(ClaimKey claim, TaskProgress progress, const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) return put_back(claim, std::move(progress));
  const auto* error = std::get_if<SqlError>(&reply);
  if (error == nullptr) return;
  if (error->sqlstate == sqlstate::kClaimIsOver) {
    if (on_claim_lost) on_claim_lost(claim);
    return;
  }
  log_.warning("progress_refused",
               {{"job", claim.job_id}, {"sqlstate", error->sqlstate}, {"reason", error->message}});
  // The next attempt counts on a checkpoint.
  if (!is_passing(error->sqlstate)) return;
  if (!progress_retry_.is_running()) progress_retry_.start_in(longer_pause());
  put_back(claim, std::move(progress));
}

void Finisher::put_back(ClaimKey claim, TaskProgress progress) {
  progress.take_newer(std::exchange(progress_[claim], {}));
  progress_[claim] = std::move(progress);
  session_.wake();
}

Duration Finisher::longer_pause() {
  return pause_ = std::clamp(pause_ * 2, kFirstEndPause, kMaxEndPause);
}

bool Finisher::send_outcomes() {
  Batch batch = take_batch([](const Pending&) { return true; });
  if (batch.empty()) return false;
  was_progress_last_ = false;
  if (batch.front().is_doubtful) {
    ask_about(std::move(batch.front()));
    return true;
  }
  Call call;
  ReplyHandler take_reply = send_off(std::move(batch), call);
  session_.send(call.statement, std::move(call.params), kEndDeadline, std::move(take_reply));
  return true;
}

// Only statements that answer for each job: a statement that raises would undo the claim as well.
std::optional<Finisher::WithClaim> Finisher::take_with_claim() {
  // A pooler gets one statement at a time, as it likes best.
  if (session_.is_pooled() || waiting_.empty() || !heartbeat_.is_fresh()) return std::nullopt;
  Batch batch = take_batch([](const Pending& pending) {
    const Outcome::Kind kind = pending.outcome.kind;
    return !is_single(pending) && (kind == Outcome::Kind::complete || kind == Outcome::Kind::fail);
  });
  if (batch.empty()) return std::nullopt;
  // The commit of a job's end in a queue lets the queue's next job go, which the claim should see.
  const bool frees_queues = std::any_of(batch.begin(), batch.end(), [&](const Pending& pending) {
    const HeldJob* job = held_.find(pending.outcome.claim);
    return job != nullptr && job->job.input.queue_name.has_value();
  });
  WithClaim with_claim;
  with_claim.commit = frees_queues ? Commit::each : Commit::together;
  with_claim.take_reply = send_off(std::move(batch), with_claim.call);
  return with_claim;
}

// The oldest that may go, and everything else that may travel in the same statement.
template <class MayGo>
Finisher::Batch Finisher::take_batch(MayGo may_go) {
  const TimePoint now = timers_.now();
  Batch batch;
  std::set<std::int64_t> job_ids;  // one answer per id: two claims of one job go one by one
  std::size_t bytes = 0;
  std::deque<Pending> rest;
  for (Pending& pending : waiting_) {
    const ClaimKey claim = pending.outcome.claim;
    const bool is_last_word = progress_.count(claim) == 0 && reporting_.count(claim) == 0;
    bool goes = pending.not_before <= now && is_last_word && may_go(pending);
    if (goes && !batch.empty()) {
      goes = travel_together(batch.front(), pending) && batch.size() < kMaxJobs &&
             bytes + size_of(pending.outcome) <= kMaxBytes && job_ids.count(claim.job_id) == 0;
    }
    if (goes) {
      bytes += size_of(pending.outcome);
      job_ids.insert(claim.job_id);
      batch.push_back(std::move(pending));
    } else {
      rest.push_back(std::move(pending));
    }
  }
  waiting_ = std::move(rest);
  return batch;
}

bool Finisher::is_single(const Pending& pending) {
  return pending.goes_alone || pending.is_doubtful || pending.outcome.kind == Outcome::Kind::snooze;
}

bool Finisher::travel_together(const Pending& one, const Pending& other) {
  return one.outcome.kind == other.outcome.kind && !is_single(one) && !is_single(other);
}

// The call that reports a batch, and the handler of the reply.
ReplyHandler Finisher::send_off(Batch batch, Call& call) {
  std::vector<const Outcome*> outcomes;
  outcomes.reserve(batch.size());
  for (const Pending& pending : batch) outcomes.push_back(&pending.outcome);
  call = call_for(outcomes);
  under_way_ += batch.size();
  const auto sent = std::make_shared<Batch>(std::move(batch));
  return [this, sent](const Reply& reply) {
    under_way_ -= sent->size();
    take_reply(std::move(*sent), reply);
  };
}

void Finisher::take_reply(Batch batch, const Reply& reply) {
  if (const auto* rows = std::get_if<QueryResult>(&reply))
    return take_answers(std::move(batch), *rows);
  if (const auto* error = std::get_if<SqlError>(&reply)) {
    return take_refusal(std::move(batch), *error);
  }
  if (std::holds_alternative<ConnectionLost>(reply)) {
    for (Pending& pending : batch) pending.was_sent = true;
  }
  put_back(std::move(batch));
}

void Finisher::put_back(Batch batch) {
  for (auto pending = batch.rbegin(); pending != batch.rend(); ++pending) {
    waiting_.push_front(std::move(*pending));
  }
  session_.wake();
}

void Finisher::take_answers(Batch batch, const QueryResult& rows) {
  pause_ = Duration::zero();
  std::map<std::int64_t, std::string> answers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    answers[rows[i].integer("id")] = rows[i].text("outcome");
  }
  for (Pending& pending : batch) {
    const std::string answer = answers[pending.outcome.claim.job_id];
    answer_pending(std::move(pending), answer);
  }
  arm_retry();
  if (on_answered) on_answered();
}

void Finisher::answer_pending(Pending pending, const std::string& answer) {
  if (answer == "stale") return answer_stale(std::move(pending));
  if (answer != "accepted") {
    pending.busy_pause = std::clamp(pending.busy_pause * 2, kFirstBusyPause, kMaxBusyPause);
    const Duration pause = pending.busy_pause;
    return wait_again(std::move(pending), pause);
  }
  switch (pending.outcome.kind) {
    case Outcome::Kind::complete:
      return conclude(pending.outcome, "completed", counters_.completed, LogLevel::info);
    default:
      if (pending.outcome.is_cancelled)
        return conclude(pending.outcome, "cancelled", counters_.cancelled, LogLevel::info);
      return conclude(pending.outcome, "failed", counters_.failed, LogLevel::warning);
    case Outcome::Kind::interrupt:
      return conclude(pending.outcome, "interrupted", counters_.interrupted, LogLevel::warning);
    case Outcome::Kind::release:
      return conclude(pending.outcome, "released", counters_.released, LogLevel::info);
    case Outcome::Kind::snooze:
      return conclude(pending.outcome, "snoozed", counters_.snoozed, LogLevel::info);
  }
}

void Finisher::answer_stale(Pending pending) {
  if (!pending.was_sent)
    return conclude(pending.outcome, "stale", counters_.stale, LogLevel::warning);
  pending.is_doubtful = true;
  waiting_.push_back(std::move(pending));
}

// Asks whether this worker ended a claim that ended after a reply was lost.
void Finisher::ask_about(Pending pending) {
  const std::string job_id = std::to_string(pending.outcome.claim.job_id);
  ++under_way_;
  session_.send(statements::kGetJob, {job_id}, kEndDeadline,
                [this, asked = std::move(pending)](const Reply& reply) {
                  --under_way_;
                  if (std::holds_alternative<ConnectionLost>(reply)) {
                    waiting_.push_front(asked);
                    return session_.wake();
                  }
                  const auto* rows = std::get_if<QueryResult>(&reply);
                  take_whereabouts(asked, rows != nullptr && !rows->empty() &&
                                              is_live((*rows)[0].text("state")));
                  if (on_answered) on_answered();
                });
}

// A completed job is not live. A failed or released job is live again either way.
void Finisher::take_whereabouts(const Pending& asked, bool is_live) {
  const bool is_refused = is_live && asked.outcome.kind == Outcome::Kind::complete;
  if (asked.outcome.is_done && !is_live)
    return conclude(asked.outcome.as_completed(), "completed", counters_.completed, LogLevel::info);
  conclude(asked.outcome, is_refused ? "stale" : "unknown",
           is_refused ? counters_.stale : counters_.unknown, LogLevel::warning);
}

void Finisher::take_refusal(Batch refused, const SqlError& error) {
  if (error.sqlstate == sqlstate::kClaimIsOver) {  // of snooze(), which ends one claim at a time
    answer_pending(std::move(refused.front()), "stale");
    if (on_answered) on_answered();
    return;
  }
  log_.warning("outcome_refused", {{"jobs", static_cast<std::int64_t>(refused.size())},
                                   {"sqlstate", error.sqlstate},
                                   {"reason", error.message}});
  // A role with the functions of 0.1.0 lacks fail_late().
  if (error.sqlstate == sqlstate::kNoPrivilege || error.sqlstate == sqlstate::kNoFunction) {
    for (Pending& pending : refused)
      if (pending.outcome.is_late()) pending.outcome.kind = Outcome::Kind::fail;
  }
  const bool is_data = is_about_data(error.sqlstate);
  if (!is_data) longer_pause();
  for (Pending& pending : refused) {
    if (is_data && refused.size() > 1) {
      pending.goes_alone = true;
      waiting_.push_back(std::move(pending));
    } else if (!is_data) {
      wait_again(std::move(pending), pause_);
    } else if (!std::exchange(pending.was_rewritten, true) &&
               make_storable(pending.outcome, error.message)) {
      waiting_.push_back(std::move(pending));
    } else {
      // The job goes back to the queue once two heartbeats have not named it.
      conclude(pending.outcome, "unreportable", counters_.unknown, LogLevel::error);
      held_.leave(pending.outcome.claim);
    }
  }
  arm_retry();
  if (on_answered) on_answered();
}

void Finisher::conclude(const Outcome& outcome, const char* event, std::int64_t& counter,
                        LogLevel level) {
  ++counter;
  const HeldJob* job = held_.find(outcome.claim);
  log_.write(level, event,
             {{"job", outcome.claim.job_id},
              {"task", job == nullptr ? "" : job->job.input.identifier},
              {"attempt", job == nullptr ? 0 : job->job.input.attempt},
              {"worker", job == nullptr ? 0 : job->worker_id},
              {"outcome", name_of(outcome)},
              {"duration_ms", outcome.ran_for},
              {"reason", outcome.reason},
              {"trace_id", job == nullptr ? "" : job->job.input.trace_id()}});
  held_.erase(outcome.claim);
}

void Finisher::wait_again(Pending pending, Duration delay) {
  pending.not_before = timers_.now() + delay;
  waiting_.push_back(std::move(pending));
}

void Finisher::arm_retry() {
  std::optional<TimePoint> next;
  for (const Pending& pending : waiting_) {
    if (!next || pending.not_before < *next) next = pending.not_before;
  }
  if (next) retry_.start_at(*next);
}

}  // namespace pulse
