#include "liveness/heartbeat.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/postgres/array_literal.hpp"
#include "base/postgres/sqlstate.hpp"
#include "liveness/aligned.hpp"
#include "session/refusal.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRegistrationDeadline = 10s;
constexpr Duration kRegistrationPause = 1s;
constexpr Duration kMinAnswerDeadline = 2s;

std::vector<std::int64_t> job_ids(const std::vector<ClaimKey>& claims) {
  std::set<std::int64_t> ids;
  for (const ClaimKey& claim : claims) ids.insert(claim.job_id);
  return {ids.begin(), ids.end()};
}

// The claims among `claims` whose job the server names.
std::vector<ClaimKey> named(const std::vector<ClaimKey>& claims,
                            const std::vector<std::int64_t>& ids) {
  const std::set<std::int64_t> wanted(ids.begin(), ids.end());
  std::vector<ClaimKey> found;
  std::copy_if(claims.begin(), claims.end(), std::back_inserter(found),
               [&](const ClaimKey& claim) { return wanted.count(claim.job_id) > 0; });
  return found;
}

// Why no further try can register this worker, if none can.
std::optional<ExitCode> final_refusal(const std::string& sqlstate) {
  if (sqlstate == sqlstate::kSettingsDisagree) return ExitCode::configuration;
  if (sqlstate == sqlstate::kBadValue) return ExitCode::configuration;
  if (sqlstate == sqlstate::kNoPrivilege) return ExitCode::configuration;
  if (sqlstate == sqlstate::kNoSchema) return ExitCode::database_gone;
  if (sqlstate == sqlstate::kNoFunction) return ExitCode::database_gone;
  return std::nullopt;
}

}  // namespace

Heartbeat::Heartbeat(HeartbeatConfig config, Session& session, Timers& timers,
                     const ReportedClaims& held, Log& log)
    : config_(std::move(config)),
      session_(session),
      timers_(timers),
      held_(held),
      log_(log),
      served_{{}, config_.info_json},
      next_beat_(timers, [this] { session_.wake(); }),
      next_registration_(timers, [this] { session_.wake(); }) {
  session_.add_sender([this] { return send_next(); });
  session_.on_opened = [this] {
    needs_attachment_ = true;
    is_beat_wanted_ = true;
    // The answer may be lost, and another server may not have heard the last one.
    if (has_told_) told_.reset();
  };
  session_.on_lost = [this](const std::string&) { end_farewell(); };
}

bool Heartbeat::is_fresh() const {
  return registration_ && timers_.now() < last_good_ + registration_->silence_limit();
}

bool Heartbeat::is_overdue() const { return overdue_at(timers_.now()) > Duration::zero(); }

std::chrono::nanoseconds Heartbeat::missed() const { return missed_ + overdue_at(timers_.now()); }

std::chrono::nanoseconds Heartbeat::overdue_at(TimePoint time) const {
  if (!registration_) return {};
  // A tenth of the limit is for a beat that is under way.
  const Duration allowed = registration_->heartbeat_interval + registration_->silence_limit() / 10;
  return std::max(std::chrono::nanoseconds::zero(), time - last_good_ - allowed);
}

void Heartbeat::beat_now() {
  is_beat_wanted_ = true;
  session_.wake();
}

bool Heartbeat::send_next() {
  if (farewell_done_) {
    send_farewell();
  } else if (returned_) {
    send_return();
  } else if (!registration_) {
    if (next_registration_.is_running() || (may_register && !may_register())) return false;
    send_registration();
  } else if (needs_attachment_ && !session_.is_pooled()) {
    send_attachment();
  } else if (needs_handlers_) {
    send_handlers();
  } else if (is_beat_wanted_ || !next_beat_.is_running()) {
    send_beat();
  } else if (must_tell_tasks()) {
    send_tasks();
  } else {
    return false;
  }
  return true;
}

void Heartbeat::send_return() {
  session_.send(statements::kHeartbeat, {std::to_string(*returned_), std::nullopt},
                kRegistrationDeadline, [this](const Reply& reply) {
                  if (std::holds_alternative<ConnectionLost>(reply)) return;
                  returned_.reset();
                });
}

void Heartbeat::send_registration() {
  const TimePoint sent_at = timers_.now();
  is_registering_ = true;
  std::optional<std::string> interval;
  if (config_.interval) interval = interval_param(*config_.interval);
  session_.send(statements::kRegisterWorker,
                {config_.name, array_literal(served_.tasks), served_.info_json, interval},
                kRegistrationDeadline, [this, sent_at, named = served_](const Reply& reply) {
                  take_registration(sent_at, named, reply);
                });
}

void Heartbeat::take_registration(TimePoint sent_at, const Served& named, const Reply& reply) {
  is_registering_ = false;
  const auto* rows = std::get_if<QueryResult>(&reply);
  if (rows == nullptr) {
    const auto* error = std::get_if<SqlError>(&reply);
    const auto code = error == nullptr ? std::nullopt : final_refusal(error->sqlstate);
    // on_refused logs a refusal that ends the worker.
    log_failure("register_worker", reply, code ? LogLevel::debug : LogLevel::warning);
    if (farewell_done_) return end_farewell();
    if (code && on_refused) on_refused(*code, refusal_text(*error, session_));
    next_registration_.start_in(kRegistrationPause);
    return;
  }
  registration_ = registration_of((*rows)[0]);
  if (farewell_done_) return;  // the farewell comes next
  told_ = named;
  has_told_ = is_telling_put_off_ = false;
  last_good_ = sent_at;
  needs_attachment_ = true;
  needs_handlers_ = true;
  is_established_ = false;
  is_beat_wanted_ = false;
  next_beat_.start_at(next_beat_after(sent_at));
  log_.info("registered", {{"worker", registration_->worker_id},
                           {"name", config_.name},
                           {"heartbeat_interval_ms", registration_->heartbeat_interval.count()},
                           {"sweep_threshold_ms", registration_->sweep_threshold.count()}});
  if (on_registered) on_registered();
}

void Heartbeat::serve(std::vector<std::string> tasks) {
  served_.tasks = std::move(tasks);
  if (registration_) session_.wake();
}

void Heartbeat::set_info(std::string info_json) {
  served_.info_json = std::move(info_json);
  if (registration_) session_.wake();
}

bool Heartbeat::must_tell_tasks() const { return !is_telling_put_off_ && told_ != served_; }

void Heartbeat::send_tasks() {
  const std::int64_t worker_id = registration_->worker_id;
  has_told_ = true;
  session_.send(statements::kServeTasks,
                {std::to_string(worker_id), array_literal(served_.tasks), served_.info_json},
                answer_deadline(), [this, worker_id, told = served_](const Reply& reply) {
                  take_told(worker_id, told, reply);
                });
}

// A refusal that does not pass is the server's answer until the list changes: an older extension
// has no such function, and a role of an older grant no right to call it.
void Heartbeat::take_told(std::int64_t worker_id, const Served& told, const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) return;
  if (!registration_ || registration_->worker_id != worker_id) return;
  const auto* error = std::get_if<SqlError>(&reply);
  is_telling_put_off_ = error != nullptr && is_passing(error->sqlstate);
  if (!is_telling_put_off_) told_ = told;
  if (error == nullptr || error->sqlstate == sqlstate::kNoFunction) return;
  if (error->sqlstate == sqlstate::kWorkerIsLost) return take_refused(worker_id, error->message);
  log_failure("serve_tasks", reply);
}

TimePoint Heartbeat::next_beat_after(TimePoint sent_at) const {
  const TimePoint next = sent_at + registration_->heartbeat_interval;
  return config_.is_one_of_many ? aligned(next, registration_->heartbeat_interval) : next;
}

void Heartbeat::ask_for_handlers() {
  needs_handlers_ = true;
  session_.wake();
}

void Heartbeat::send_handlers() {
  needs_handlers_ = false;
  session_.send(statements::kHandlerTasks, {}, answer_deadline(),
                [this](const Reply& reply) { take_handlers(reply); });
}

void Heartbeat::take_handlers(const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) {
    needs_handlers_ = true;
    return;
  }
  if (const auto* rows = std::get_if<QueryResult>(&reply)) {
    if (on_handler_tasks) on_handler_tasks(json_strings((*rows)[0].optional_text("tasks")));
  } else if (std::get<SqlError>(reply).sqlstate != sqlstate::kNoFunction) {  // 0.1.0 has none
    log_failure("handler_tasks", reply);
    is_refused_for_now_ |= is_passing(std::get<SqlError>(reply).sqlstate);
  }
  establish();
}

void Heartbeat::establish() {
  if (is_established_) return;
  is_established_ = true;
  if (on_established) on_established();
}

void Heartbeat::send_attachment() {
  const std::int64_t worker_id = registration_->worker_id;
  session_.send(statements::kAttachWorker, {std::to_string(worker_id)}, answer_deadline(),
                [this, worker_id](const Reply& reply) {
                  needs_attachment_ = false;
                  const auto* error = std::get_if<SqlError>(&reply);
                  if (!std::holds_alternative<QueryResult>(reply))
                    log_failure("attach_worker", reply);
                  if (error == nullptr) return;
                  is_refused_for_now_ |= is_passing(error->sqlstate);
                  if (error->sqlstate == sqlstate::kWorkerIsLost) {
                    take_refused(worker_id, error->message);
                  }
                });
}

void Heartbeat::send_beat() {
  const TimePoint sent_at = timers_.now();
  const std::int64_t worker_id = registration_->worker_id;
  const bool is_early = next_beat_.is_running();
  const std::vector<ClaimKey> claims = held_.claims_of(worker_id);
  std::optional<std::string> ids = array_literal(job_ids(claims));
  if (may_name_jobs(is_early)) {
    last_list_ = sent_at;
  } else {
    ids.reset();
  }
  is_beat_wanted_ = false;
  is_naming_jobs_ = ids.has_value();
  next_beat_.start_at(next_beat_after(sent_at));
  session_.send(statements::kHeartbeat, {std::to_string(worker_id), ids}, answer_deadline(),
                [this, worker_id, sent_at, claims](const Reply& reply) {
                  is_naming_jobs_ = false;
                  take_beat(worker_id, sent_at, claims, reply);
                });
}

// The server gives back a job that two lists leave out. So no two lists fall into one claim,
// however long the claim's answer takes; and a beat before the scheduled time names no jobs while a
// claim may be under way.
bool Heartbeat::may_name_jobs(bool is_early) const {
  if (is_early && has_claim_under_way && has_claim_under_way()) return false;
  const auto since = claim_under_way_since ? claim_under_way_since() : std::nullopt;
  return !since || *since >= last_list_;
}

void Heartbeat::take_beat(std::int64_t worker_id, TimePoint sent_at,
                          const std::vector<ClaimKey>& claims, const Reply& reply) {
  const auto* rows = std::get_if<QueryResult>(&reply);
  if (rows == nullptr) {
    log_failure("heartbeat", reply);
    return;
  }
  if (!registration_ || registration_->worker_id != worker_id) return;
  const QueryResult::Row row = (*rows)[0];
  if (row.text("status") == "lost") {
    declare_lost(worker_id, "the server says so");
    return;
  }
  missed_ += overdue_at(sent_at);
  last_good_ = sent_at;
  failures_.forget();
  if (std::exchange(is_refused_for_now_, false)) needs_attachment_ = needs_handlers_ = true;
  is_telling_put_off_ = false;
  log_.debug("heartbeat", {{"worker", worker_id},
                           {"status", row.text("status")},
                           {"jobs", static_cast<std::int64_t>(claims.size())}});
  take_status(row, claims);
  if (on_good_beat) on_good_beat();
}

void Heartbeat::take_status(const QueryResult::Row& row, const std::vector<ClaimKey>& claims) {
  const std::vector<ClaimKey> revoked = named(claims, row.integers("revoked"));
  if (!revoked.empty() && on_revoked) on_revoked(revoked);
  const std::vector<ClaimKey> cancelled = named(claims, row.integers("cancelled"));
  if (!cancelled.empty() && on_cancelled) on_cancelled(cancelled);
  const bool sweeps = !row.is_null("background_sweeps") && row.text("background_sweeps") == "on";
  if (on_background_sweeps) on_background_sweeps(sweeps);
  const std::string& status = row.text("status");
  if (!on_order) return;
  if (status == "draining") on_order(Order::drain);
  if (status == "stopping") on_order(Order::stop);
}

void Heartbeat::take_refused(std::int64_t worker_id, const std::string& reason) {
  if (!registration_ || registration_->worker_id != worker_id) return;
  returned_ = worker_id;
  declare_lost(worker_id, reason);
}

void Heartbeat::declare_lost(std::int64_t worker_id, const std::string& reason) {
  if (!registration_ || registration_->worker_id != worker_id) return;
  log_.warning("lost", {{"worker", worker_id}, {"reason", reason}});
  registration_.reset();
  next_beat_.stop();
  end_farewell();
  if (on_lost) on_lost(worker_id);
  session_.wake();
}

void Heartbeat::deregister(Duration deadline, std::function<void()> done) {
  // A registration that waits for an answer may register this worker all the same.
  if ((!registration_ && !is_registering_) || !session_.is_open()) {
    done();
    return;
  }
  farewell_deadline_ = deadline;
  farewell_done_ = std::move(done);
  session_.wake();
}

void Heartbeat::send_farewell() {
  session_.send(statements::kDeregisterWorker, {std::to_string(registration_->worker_id)},
                farewell_deadline_, [this](const Reply& reply) {
                  if (!std::holds_alternative<QueryResult>(reply))
                    log_failure("deregister_worker", reply);
                  registration_.reset();
                  end_farewell();
                });
}

void Heartbeat::end_farewell() {
  const auto done = std::move(farewell_done_);
  farewell_done_ = nullptr;
  if (done) done();
}

void Heartbeat::log_failure(const char* statement, const Reply& reply, LogLevel level) {
  const auto* error = std::get_if<SqlError>(&reply);
  const auto* lost = std::get_if<ConnectionLost>(&reply);
  const std::string reason = error == nullptr ? lost->reason : refusal_text(*error, session_);
  log_.write(failures_.level_of(statement + reason, timers_.now(), level), "heartbeat_failed",
             {{"statement", statement},
              {"sqlstate", error == nullptr ? "" : error->sqlstate},
              {"reason", reason}});
}

// Short enough that another connection can still beat before claims are doubted.
Duration Heartbeat::answer_deadline() const {
  const Duration patient = std::max(registration_->heartbeat_interval, kMinAnswerDeadline);
  return std::min(patient, registration_->silence_limit() / 2);
}

}  // namespace pulse
