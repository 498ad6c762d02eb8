#include "task_limits.hpp"

#include <set>
#include <string>
#include <vector>

#include "base/postgres/array_literal.hpp"
#include "session/refusal.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLimitsDeadline = 5s;

}  // namespace

TaskLimits::TaskLimits(Session& session, const Heartbeat& heartbeat, HeldJobs& held, Timers& timers,
                       Log& log)
    : session_(session), heartbeat_(heartbeat), held_(held), timers_(timers), log_(log) {
  session_.add_sender([this] { return send_next(); });
}

void TaskLimits::refresh() {
  is_wanted_ = true;
  session_.wake();
}

bool TaskLimits::send_next() {
  if (!is_wanted_ || !heartbeat_.registration()) return false;
  is_wanted_ = false;
  std::set<std::string> tasks;
  for (HeldJob* job : held_.unended()) tasks.insert(job->job.input.identifier);
  if (tasks.empty()) return false;
  session_.send(statements::kTaskLimits,
                {std::to_string(heartbeat_.registration()->worker_id),
                 array_literal(std::vector<std::string>(tasks.begin(), tasks.end()))},
                kLimitsDeadline, [this](const Reply& reply) { take(reply); });
  return true;
}

void TaskLimits::take(const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) is_wanted_ = true;
  if (const auto* error = std::get_if<SqlError>(&reply)) {
    const std::string reason = refusal_text(*error, session_);
    log_.write(failures_.level_of(reason, timers_.now()), "limits_failed",
               {{"sqlstate", error->sqlstate}, {"reason", reason}});
  }
  const auto* rows = std::get_if<QueryResult>(&reply);
  if (rows == nullptr) return;
  failures_.forget();
  for (std::size_t i = 0; i < rows->size(); ++i) give((*rows)[i]);
  if (on_changed) on_changed();
}

void TaskLimits::give(const QueryResult::Row& limits) {
  for (HeldJob* job : held_.unended()) {
    if (job->job.input.identifier != limits.text("identifier")) continue;
    take_limits(job->job, limits);
    job->limits_as_of = timers_.now();
  }
}

}  // namespace pulse
