#include "session/refusal.hpp"

#include "base/postgres/sqlstate.hpp"

namespace pulse {

std::string refusal_text(const SqlError& error, const Session& session, const NeededRight& needed) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const std::string& role = session.role();
  if (error.sqlstate == sqlstate::kNoPrivilege) {
    const bool is_plain = role.find_first_not_of(kPlain) == std::string::npos;
    const std::string name = is_plain ? role : '"' + role + '"';
    return "role " + role + " may not " + needed.purpose + " (" + error.message +
           "): SELECT pulse." + needed.grant + "('" + name + "')";
  }
  // DROP EXTENSION leaves the schema, so the missing part may be a function.
  if (error.sqlstate == sqlstate::kNoSchema || error.sqlstate == sqlstate::kNoFunction) {
    return "database " + session.database() + " has no pg_pulse (" + error.message +
           "): CREATE EXTENSION pg_pulse";
  }
  return in_one_line(error.message, error.detail, error.hint);
}

std::string in_one_line(const std::string& message, const std::string& detail,
                        const std::string& hint) {
  std::string text = with_detail(message, detail);
  if (!hint.empty()) text += ": " + hint;
  return text;
}

bool is_passing(const std::string& sqlstate) {
  for (const char* passing : {"08", "25", "40", "53", "55", "57", "58"}) {
    if (sqlstate.starts_with(passing)) return true;
  }
  return sqlstate.empty();
}

}  // namespace pulse
