#include "service/lent_session.hpp"

#include "base/http/status.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

// The role "none" is the session's own role. Behind a pooler the statement sets nothing, and
// returns no row: another client would inherit the settings.
constexpr const char* kSetRole =
    "SELECT set_config('role', $1, false), set_config('default_transaction_read_only', $2, false),"
    " set_config('statement_timeout', $3, false)"
    " FROM (SELECT WHERE pg_catalog.pg_backend_pid() = $4::int) AS own";

// The roles that a role may become, and its rights, change without a notice to its sessions.
constexpr std::chrono::seconds kTrusted(10);

constexpr const char* kMayCall =
    "SELECT p.proname FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid ="
    " p.pronamespace WHERE n.nspname = 'pulse' AND p.proname IN ('start_operation', 'read_job')"
    " AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')";

}  // namespace

LentSession::LentSession(std::optional<Database> database, std::string statement_timeout)
    : database_(std::move(database)), statement_timeout_(std::move(statement_timeout)) {}

Database* LentSession::lend(Access& access, bool is_change) {
  if (!database_) return nullptr;
  const std::string role = access.role.empty() ? "none" : access.role;
  const bool is_as_wanted = role == role_ && is_change == may_write_ &&
                            std::chrono::steady_clock::now() - set_up_at_ < kTrusted;
  if (!database_->has_lived_on() || !is_as_wanted) set_up(role, is_change);
  access.is_operator = access.has_token() && is_operator_;
  access.reads_jobs = reads_jobs_;
  return &*database_;
}

void LentSession::set_up(const std::string& role, bool may_write) {
  role_.clear();
  *is_opening_ = true;
  try {
    database_->open();
  } catch (...) {
    *is_opening_ = false;
    throw;
  }
  *is_opening_ = false;
  try {
    const Params params{role, may_write ? "off" : "on", statement_timeout_,
                        std::to_string(database_->backend_pid())};
    if (database_->query(kSetRole, params).empty()) {
      throw Failed({http_status::kUnavailable, "A pooler stands between",
                    "a pooler would lend the role of a token to its other clients", "",
                    "Give pulse serve sessions of its own: -d names the database itself."});
    }
  } catch (const Refused& refused) {
    throw Failed({http_status::kForbidden, title_of(http_status::kForbidden), refused.error.message,
                  refused.error.sqlstate,
                  "The role of the token must exist, and the role of this server be a member."});
  }
  is_operator_ = reads_jobs_ = false;
  const QueryResult may_call = database_->query(kMayCall);
  for (std::size_t i = 0; i < may_call.size(); ++i) {
    (may_call[i].text("proname") == "read_job" ? reads_jobs_ : is_operator_) = true;
  }
  role_ = role;
  may_write_ = may_write;
  set_up_at_ = std::chrono::steady_clock::now();
}

}  // namespace pulse::console
