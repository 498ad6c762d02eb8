#include "database/database.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "base/postgres/array_literal.hpp"
#include "base/postgres/session_settings.hpp"
#include "base/postgres/sqlstate.hpp"
#include "database/interrupt.hpp"

namespace pulse::console {
namespace {

// Behind a pooler the process is another process, and the statement sets nothing: another client
// would inherit the settings.
constexpr const char* kSetSettings =
    "SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, false))"
    " FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]),"
    " pg_catalog.unnest($3::pg_catalog.text[])) AS s(name, value)"
    " JOIN pg_catalog.pg_settings AS p"
    " ON p.name OPERATOR(pg_catalog.=) s.name AND p.source OPERATOR(pg_catalog.<>) 'client'"
    " WHERE pg_catalog.int4eq(pg_catalog.pg_backend_pid(), $1::integer)";

// An operator who sees nothing cannot know that a lock keeps the answer.
constexpr const char* kLockPatience = "5s";
constexpr const char* kWhoHoldsIt =
    "A lock kept the answer for 5 seconds: pulse doctor, and /doctor of pulse serve, name who "
    "holds the lock.";

// Of several nodes each writes times in the same zone, so that a reader can compare the times.
Params settings_params(int backend_pid, bool is_node) {
  statements::SessionSettings settings = statements::own_settings(kLockPatience);
  settings.insert(settings.end(), {{"extra_float_digits", "1"}, {"IntervalStyle", "postgres"}});
  if (is_node) settings.emplace_back("TimeZone", "UTC");
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& [name, value] : settings) {
    names.push_back(name);
    values.push_back(value);
  }
  return {std::to_string(backend_pid), array_literal(names), array_literal(values)};
}

}  // namespace

Database::Database(ConnectOptions options, std::string node)
    : options_(std::move(options)), node_(std::move(node)) {}

void Database::open() {
  if (connection_) return;
  auto opened = BlockingConnection::open(options_);
  if (const auto* lost = std::get_if<ConnectionLost>(&opened)) lose(*lost);
  connection_ = std::get<std::unique_ptr<BlockingConnection>>(std::move(opened));
  set_up();
}

// Neither the output nor the changes may depend on settings of the role or the database. Settings
// of the user in PGOPTIONS stay.
void Database::set_up() {
  connection_->on_notice = [this](const SqlError& notice) {
    if (on_notice) on_notice(notice);
  };
  name_ = node_.empty() ? connection_->database() : node_;
  role_ = connection_->role();
  quickest_ = std::chrono::microseconds::max();
  query("SET datestyle = 'ISO, YMD'");
  query(kSetSettings, settings_params(backend_pid(), !node_.empty()));
}

void Database::note_answer_after(std::chrono::microseconds taken) {
  quickest_ = std::min(quickest_, taken);
  worked_ += taken - quickest_;
}

bool Database::has_lived_on() {
  if (connection_ && !connection_->has_lived_on()) close();
  return is_open();
}

void Database::lose(const ConnectionLost& lost) {
  connection_.reset();
  throw Unreachable(lost.reason);
}

QueryResult Database::query(const char* sql, const Params& params) {
  open();
  const InterruptCancels cancels(*connection_);
  Reply reply = connection_->query(sql, params);
  note_answer_after(std::chrono::ceil<std::chrono::microseconds>(connection_->answered_after()));
  if (const auto* lost = std::get_if<ConnectionLost>(&reply)) lose(*lost);
  if (auto* error = std::get_if<SqlError>(&reply)) {
    if (error->sqlstate == sqlstate::kLockNotAvailable && error->hint.empty()) {
      error->hint = kWhoHoldsIt;
    }
    throw Refused(std::move(*error));
  }
  return std::get<QueryResult>(std::move(reply));
}

std::optional<std::string> Database::wait_for_notification(Duration max_wait) {
  open();
  auto notification = connection_->wait_for_notification(max_wait);
  if (const auto* lost = std::get_if<ConnectionLost>(&notification)) lose(*lost);
  return std::get<std::optional<std::string>>(std::move(notification));
}

}  // namespace pulse::console
