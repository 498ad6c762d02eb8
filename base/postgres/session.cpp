#include "base/postgres/session.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "base/postgres/array_literal.hpp"
#include "base/postgres/session_settings.hpp"

namespace pulse {
namespace {

// A cancel that arrives before the statement does nothing, so the session sends it until there is
// an answer.
constexpr Duration kCancelAgain = std::chrono::milliseconds(50);

// So many deadlines pass at most while bytes of a reply come in.
constexpr int kMaxExtensions = 20;

// A connection on which no byte has moved for this long may have stalled with the connection
// beside.
constexpr Duration kStandstill = std::chrono::seconds(1);

// A session that borrows is closed when no sender has needed it for this long.
constexpr Duration kRest = std::chrono::seconds(10);

// The options of a session that was open before are right.
std::optional<std::string> hint_for(const Session& session) {
  if (session.was_open()) return std::nullopt;
  return kHowToConnect;
}

}  // namespace

Session::Session(SessionConfig config, Connection& connection, Timers& timers, Reconnect reconnect,
                 Log& log)
    : config_(std::move(config)),
      connection_(connection),
      reconnect_(std::move(reconnect)),
      log_(log),
      deadline_(timers, [this] { give_up(); }),
      cancelling_(timers, [this] { cancel(); }),
      pause_(timers, [this] { end_pause(); }),
      asking_(timers, [this] { ask_senders(); }),
      resting_(timers, [this] { rest_if_idle(); }),
      timers_(timers) {
  connection_.on_lost = [this](const ConnectionLost& lost) { lose(lost.reason); };
  connection_.on_moved = [this] { extend_deadline(); };
  connection_.on_notice = [this](const Notice& notice) {
    if (on_notice) on_notice(notice);
  };
}

void Session::open() {
  if (state_ == State::closed || state_ == State::resting) start_opening();
}

void Session::borrow_from(Session& lender) {
  lender_ = &lender;
  lender.borrower_ = this;
  state_ = State::resting;
  lender.add_sender([&lender] { return lender.ask_borrower(); });
}

void Session::close() {
  connection_.close();
  state_ = State::closed;
  ++closes_;
  handlers_.clear();
  deadline_.stop();
  cancelling_.stop();
  pause_.stop();
  asking_.stop();
  resting_.stop();
}

void Session::rest_if_idle() {
  const TimePoint due = needed_at_ + kRest;
  if (state_ != State::free || due > timers_.now()) {
    return resting_.start_at(std::max<TimePoint>(due, timers_.now() + kStandstill));
  }
  log_.debug("disconnected", {{"connection", config_.name}, {"reason", "idle"}});
  connection_.close();
  state_ = State::resting;
  opened_at_ = TimePoint{};
}

// A session that borrows is opened again if the session was open, or is needed.
void Session::end_pause() {
  if (lender_ == nullptr || is_cut_) return start_opening();
  state_ = State::resting;
  ask_senders();
}

void Session::start_opening() {
  state_ = State::opening;
  opening_since_ = timers_.now();
  deadline_.start_in(config_.open_deadline);
  connection_.open([this, closes = closes_](std::variant<Opened, OpenFailure> outcome) {
    if (const auto* opened = std::get_if<Opened>(&outcome)) return set_up(*opened);
    const auto& failure = std::get<OpenFailure>(outcome);
    if (!failure.is_permanent) refused_since_.reset();
    if (failure.is_permanent && !refused_since_) refused_since_ = timers_.now();
    if (failure.is_permanent && on_refused) on_refused(failure.reason);
    if (closes == closes_) lose(failure.reason);
  });
}

void Session::set_up(const Opened& opened) {
  refused_since_.reset();
  state_ = State::setting_up;
  connection_.execute(
      {set_up_call(opened.backend_pid)}, Commit::each,
      [this, opened](const Replies& replies) { finish_set_up(opened, replies.front()); });
}

Call Session::set_up_call(int backend_pid) const {
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& [name, value] : config_.settings) {
    names.push_back(name);
    values.push_back(value);
  }
  return {statements::kSetUp,
          {std::to_string(backend_pid), array_literal(names), array_literal(values)}};
}

Calls Session::renewal() const {
  if (is_pooled_) return {};
  return {{statements::kDiscard, {}}, set_up_call(backend_pid_)};
}

void Session::finish_set_up(const Opened& opened, const Reply& reply) {
  deadline_.stop();
  if (const auto* lost = std::get_if<ConnectionLost>(&reply)) return lose(lost->reason);
  is_pooled_ = false;
  database_ = opened.database;
  role_ = opened.role;
  backend_pid_ = opened.backend_pid;
  is_superuser_ = opened.is_superuser;
  if (const auto* rows = std::get_if<QueryResult>(&reply)) {
    is_pooled_ = (*rows)[0].integer("backend_pid") != opened.backend_pid;
  } else {
    const auto& error = std::get<SqlError>(reply);
    log_.warning(
        "set_up_refused",
        {{"connection", config_.name}, {"sqlstate", error.sqlstate}, {"reason", error.message}});
  }
  connection_.keep_statements(!is_pooled_);
  state_ = State::free;
  opened_at_ = timers_.now();
  last_reason_.clear();
  losses_.forget();
  log_.debug("connected", {{"connection", config_.name}, {"backend_pid", opened.backend_pid}});
  moved_at_ = needed_at_ = opened_at_;
  if (is_pooled_ && on_pooled) on_pooled();
  if (on_opened) on_opened();
  for (Session* follower : followers_) follower->hurry(opening_since_, had_hung_);
  had_hung_ = false;
  if (lender_ != nullptr) resting_.start_in(kRest);
  wake();
}

void Session::send(const Statement& statement, Params params, Duration deadline,
                   ReplyHandler handler) {
  send(Calls{{statement, std::move(params)}}, Commit::each, deadline, {std::move(handler)});
}

void Session::send(Calls calls, Commit commit, Duration deadline,
                   std::vector<ReplyHandler> handlers) {
  if (is_lent_) return lender_->send(std::move(calls), commit, deadline, std::move(handlers));
  assert(state_ == State::free && calls.size() == handlers.size());
  state_ = State::busy;
  running_.clear();
  for (const Call& call : calls)
    running_ += (running_.empty() ? "" : ", ") + std::string(call.statement.name);
  handlers_ = std::move(handlers);
  moved_at_ = timers_.now();
  patience_ = deadline;
  last_deadline_ = timers_.now() + deadline * kMaxExtensions;
  deadline_.start_in(deadline);
  connection_.execute(calls, commit, [this](Replies replies) { answer(std::move(replies)); });
}

void Session::cancel() {
  if (state_ != State::busy) return;
  connection_.cancel();
  cancelling_.start_in(kCancelAgain);
}

void Session::answer(Replies replies) {
  deadline_.stop();
  cancelling_.stop();
  const std::vector<ReplyHandler> handlers = std::exchange(handlers_, {});
  // Calls are lost from some call to the last: the last reply tells.
  const auto* lost = std::get_if<ConnectionLost>(&replies.back());
  const bool is_lost = lost != nullptr;
  const std::string reason = is_lost ? lost->reason : std::string();
  state_ = is_lost ? State::opening : State::free;  // when lost, handlers may send nothing
  if (!is_lost) wake_if_free();
  const std::uint64_t closes = closes_;
  try {
    for (std::size_t i = 0; i < handlers.size() && closes == closes_; ++i) {
      handlers[i](std::move(replies[i]));
    }
  } catch (const std::runtime_error& error) {
    // The answer has another shape than expected: the extension is of another version.
    const std::string problem = running_ + ": " + error.what();
    log_.error("unreadable_answer", {{"connection", config_.name}, {"reason", problem}});
    if (on_unreadable) on_unreadable(problem);
  }
  if (is_lost && closes == closes_) lose(reason);
}

// A reply that is under way may be long, and the network slow.
void Session::extend_deadline() {
  moved_at_ = timers_.now();
  if (state_ != State::busy || !config_.waits_for_bytes) return;
  deadline_.start_at(std::min<TimePoint>(timers_.now() + patience_, last_deadline_));
}

void Session::drop(const std::string& reason) {
  if (state_ != State::busy) return;
  connection_.close();
  answer(Replies(handlers_.size(), ConnectionLost{reason}));
}

void Session::give_up() {
  had_hung_ = true;
  if (state_ == State::busy) return drop("no answer to " + running_ + " in time");
  connection_.close();
  lose("no connection in time");
}

void Session::hurry(TimePoint opened_since, bool had_hung) {
  const bool is_old_try = opening_since_ < opened_since;
  if (state_ == State::pausing) {
    pause_.stop();
    start_opening();
  } else if ((state_ == State::opening || state_ == State::setting_up) && is_old_try) {
    connection_.close();
    start_opening();
  } else if (had_hung && is_open() && is_old_try && moved_at_ + kStandstill <= timers_.now()) {
    const std::string reason = "another connection has hung";
    if (state_ == State::busy) return drop(reason);
    connection_.close();
    lose(reason);
  }
}

void Session::lose(const std::string& reason) {
  const Duration lived = opened_at_ == TimePoint{}
                             ? Duration::zero()
                             : std::chrono::duration_cast<Duration>(timers_.now() - opened_at_);
  is_cut_ = std::exchange(opened_at_, TimePoint{}) != TimePoint{};
  deadline_.stop();
  asking_.stop();
  resting_.stop();
  const Duration delay = reconnect_.next_delay(lived);
  last_reason_ = reason;
  log_.write(losses_.level_of(reason, timers_.now()), "reconnecting",
             {{"connection", config_.name},
              {"reason", reason},
              {"delay_ms", delay.count()},
              {"hint", hint_for(*this)}});
  state_ = State::pausing;
  pause_.start_in(delay);
  if (on_lost) on_lost(reason);
}

void Session::ask_senders() {
  if (is_open() || lender_ == nullptr) {
    if (std::exchange(is_needed_, false)) needed_at_ = timers_.now();
    ask_each_sender();
  } else if (is_needed_ && state_ == State::resting) {
    start_opening();
  } else {
    send_over_lender();
  }
}

bool Session::send_over_lender() {
  const bool may_borrow = !is_open() && (state_ == State::resting || is_failing());
  if (!may_borrow || lender_->state_ != State::free) return false;
  is_needed_ = false;
  is_lent_ = true;
  ask_each_sender();
  is_lent_ = false;
  return lender_->state_ != State::free;
}

// The sender that sent last is asked last, so that a busy sender does not starve the other senders.
void Session::ask_each_sender() {
  for (std::size_t asked = 0; asked < senders_.size(); ++asked) {
    if (!is_free()) return;
    const std::size_t asked_now = next_sender_;
    next_sender_ = (next_sender_ + 1) % senders_.size();
    if (senders_[asked_now]()) return;
  }
}

void Session::warn_of_superuser() const {
  if (!is_superuser_) return;
  log_.warning("superuser", {{"role", role_},
                             {"hint",
                              "functions of the database run with its rights: use a role of its "
                              "own, to which SELECT pulse.grant_worker('ROLE') gives what it "
                              "needs"}});
}

}  // namespace pulse
