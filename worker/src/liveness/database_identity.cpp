#include "liveness/database_identity.hpp"

#include <utility>

#include "session/statements.hpp"

namespace pulse {
namespace {

constexpr Duration kIdentityDeadline = std::chrono::seconds(5);

}  // namespace

DatabaseIdentity::DatabaseIdentity(Session& session,
                                   std::function<void(const std::string& identity)> take, Log& log)
    : session_(session), take_(std::move(take)), log_(log) {
  session_.add_sender([this] { return send_next(); });
}

bool DatabaseIdentity::send_next() {
  if (is_known_) return false;
  session_.send(statements::kDatabaseIdentity, {}, kIdentityDeadline,
                [this](const Reply& reply) { take(reply); });
  return true;
}

// A server that does not tell the identity serves all the same.
void DatabaseIdentity::take(const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) return;
  is_known_ = true;
  if (const auto* error = std::get_if<SqlError>(&reply)) {
    log_.warning("identity_unknown", {{"sqlstate", error->sqlstate}, {"reason", error->message}});
    return take_({});
  }
  const auto& rows = std::get<QueryResult>(reply);
  take_(rows.empty() ? std::string() : rows[0].text("identity"));
  session_.wake();
}

}  // namespace pulse
