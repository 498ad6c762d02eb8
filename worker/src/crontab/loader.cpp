#include "crontab/loader.hpp"

#include <utility>

#include "session/refusal.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLoadDeadline = 30s;
constexpr Duration kRetryPause = 5s;

}  // namespace

CrontabLoader::CrontabLoader(Session& session, Timers& timers, Log& log)
    : session_(session), log_(log), retry_(timers, [this] { session_.wake(); }) {
  session_.add_sender([this] { return send_next(); });
}

void CrontabLoader::set(std::string set_name, CrontabItems items) {
  set_name_ = std::move(set_name);
  items_ = std::move(items);
  retry_.stop();
  is_wanted_ = true;
  if (is_started_) session_.wake();
}

void CrontabLoader::start() {
  is_started_ = true;
  if (is_wanted_) session_.wake();
}

void CrontabLoader::stop() {
  is_started_ = false;
  retry_.stop();
}

void CrontabLoader::when_loaded(std::function<void()> then) {
  then_ = std::move(then);
  if (!is_wanted_ && !is_sent_) tell_loaded();
}

void CrontabLoader::tell_loaded() {
  if (then_) std::exchange(then_, nullptr)();
}

bool CrontabLoader::send_next() {
  if (!is_started_ || !is_wanted_ || is_sent_ || retry_.is_running()) return false;
  is_sent_ = true;
  is_wanted_ = false;  // items that set() brings later are loaded again
  session_.send(statements::kLoadCrontab, {set_name_, items_.json}, kLoadDeadline,
                [this](const Reply& reply) { take_reply(reply); });
  return true;
}

void CrontabLoader::take_reply(const Reply& reply) {
  const auto* rows = std::get_if<QueryResult>(&reply);
  is_sent_ = false;
  if (rows == nullptr) return take_failure(reply);
  was_loaded_ = true;
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const QueryResult::Row row = (*rows)[i];
    const std::string change = row.optional_text("change").value_or("");
    if (change == "unchanged") continue;
    ++changed;
    log_.info("schedule_loaded",
              {{"schedule", row.optional_text("name").value_or("")}, {"change", change}});
  }
  log_.info("crontab_loaded", {{"set", set_name_},
                               {"items", static_cast<std::int64_t>(items_.count)},
                               {"changed", changed}});
  if (is_wanted_) return session_.wake();
  tell_loaded();
}

void CrontabLoader::take_failure(const Reply& reply) {
  const auto* error = std::get_if<SqlError>(&reply);
  const auto* lost = std::get_if<ConnectionLost>(&reply);
  constexpr NeededRight kNeeded{"load schedules", "grant_scheduler"};
  const std::string reason =
      error == nullptr ? lost->reason : refusal_text(*error, session_, kNeeded);
  log_.warning("crontab_failed", {{"set", set_name_},
                                  {"sqlstate", error == nullptr ? "" : error->sqlstate},
                                  {"reason", reason}});
  // A refusal that does not pass needs another file or other rights.
  if (error == nullptr || is_passing(error->sqlstate)) {
    is_wanted_ = true;
    if (is_started_) retry_.start_in(kRetryPause);
    return;
  }
  if (!was_loaded_ && on_refused) on_refused("--crontab: " + reason);
  tell_loaded();
}

}  // namespace pulse
