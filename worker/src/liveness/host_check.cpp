#include "liveness/host_check.hpp"

#include "base/postgres/sqlstate.hpp"
#include "liveness/identity.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHostCheckDeadline = 30s;
// Until a claim of a dead worker, which the server has not noticed yet, has ended.
constexpr Duration kPauseForClaim = 1s;
// Until minders of a dead worker, which have seen the worker's end, have ended the tasks.
constexpr Duration kPauseForMinders = 50ms;

}  // namespace

HostCheck::HostCheck(Session& session, Timers& timers, Log& log)
    : session_(session),
      log_(log),
      second_check_(timers, [this] { check_when_free(); }),
      retry_(timers, [this] { check(); }) {
  session_.add_sender([this] { return send_next(); });
}

void HostCheck::start(const Registration& registration, IsGone is_gone) {
  worker_id_ = registration.worker_id;
  is_gone_ = std::move(is_gone);
  gone_.clear();
  if (!is_gone_) return;
  check_when_free();
  second_check_.start_in(registration.heartbeat_interval * 3 / 2);
}

void HostCheck::stop() {
  is_wanted_ = false;
  gone_.clear();
  second_check_.stop();
  retry_.stop();
}

std::optional<TimePoint> HostCheck::due() const {
  if (!second_check_.is_running()) return std::nullopt;
  return second_check_.due();
}

// A worker that finds no other worker gone does not open a session for the check.
void HostCheck::check_when_free() {
  is_wanted_ = true;
  session_.wake_if_free();
}

void HostCheck::check() {
  is_wanted_ = true;
  session_.wake();
}

void HostCheck::check_again() {
  if (gone_.empty()) return;
  gone_.clear();
  check();
}

bool HostCheck::send_next() {
  if (!gone_.empty()) {
    send_gone();
    return true;
  }
  if (!is_wanted_) return false;
  is_wanted_ = false;
  session_.send(statements::kCheckHost, {std::to_string(worker_id_)}, kHostCheckDeadline,
                [this](const Reply& reply) { take_processes(reply); });
  return true;
}

void HostCheck::take_processes(const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) {
    check();  // on the next connection
    return;
  }
  const auto* rows = std::get_if<QueryResult>(&reply);
  if (rows == nullptr) {
    log_failure("check_host", reply);
    return;
  }
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const QueryResult::Row row = (*rows)[i];
    const std::int64_t pid = row.integer("pid");
    const std::string process_start = row.optional_text("process_start").value_or("");
    if (!is_gone_(pid, process_start)) continue;
    if (has_minders(pid, process_start)) {
      retry_.start_in(kPauseForMinders);
      continue;
    }
    gone_.push_back({row.integer("id"), "its process " + std::to_string(pid) + " is gone"});
  }
  log_.debug("host_checked", {{"processes", static_cast<std::int64_t>(rows->size())},
                              {"gone", static_cast<std::int64_t>(gone_.size())}});
  if (!gone_.empty()) session_.wake();
}

void HostCheck::send_gone() {
  const Gone gone = gone_.front();
  gone_.pop_front();
  session_.send(statements::kDeclareLost, {std::to_string(gone.worker_id), gone.reason},
                kHostCheckDeadline,
                [this, gone](const Reply& reply) { take_declared(gone, reply); });
}

void HostCheck::take_declared(const Gone& gone, const Reply& reply) {
  const auto* rows = std::get_if<QueryResult>(&reply);
  if (rows != nullptr) {
    log_.info("declared_lost", {{"worker", gone.worker_id},
                                {"jobs", rows->empty() ? 0 : (*rows)[0].integer("jobs")},
                                {"reason", gone.reason}});
    return;
  }
  log_failure("declare_lost", reply);
  const auto* error = std::get_if<SqlError>(&reply);
  const bool is_claiming = error != nullptr && error->sqlstate == sqlstate::kLockNotAvailable;
  if (error == nullptr || is_claiming) retry_.start_in(kPauseForClaim);
}

void HostCheck::log_failure(const char* statement, const Reply& reply) {
  const auto* error = std::get_if<SqlError>(&reply);
  const auto* lost = std::get_if<ConnectionLost>(&reply);
  log_.warning("same_host_failed", {{"statement", statement},
                                    {"sqlstate", error == nullptr ? "" : error->sqlstate},
                                    {"reason", error == nullptr ? lost->reason : error->message}});
}

}  // namespace pulse
