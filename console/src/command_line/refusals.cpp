#include "command_line/refusals.hpp"

#include <cstdio>

#include "base/cluster/node_table.hpp"
#include "base/postgres/connection_options.hpp"
#include "base/postgres/sqlstate.hpp"
#include "base/text/inert.hpp"
#include "database/interrupt.hpp"

namespace pulse::console {
namespace {

// The refusals of the session, by the server's own codes.
constexpr const char* kUnreadable = "22";  // class: a value that is no time, no JSON …

void print_error(const std::string& message, const std::string& detail, const std::string& hint) {
  std::fprintf(stderr, "pulse: %s\n", inert(message).c_str());
  if (!detail.empty()) std::fprintf(stderr, "  %s\n", inert(detail).c_str());
  if (!hint.empty()) std::fprintf(stderr, "  hint: %s\n", inert(hint).c_str());
}

bool names_what_is_missing(const std::string& sqlstate) {
  return sqlstate == sqlstate::kNoSchema || sqlstate == sqlstate::kNoFunction ||
         sqlstate == sqlstate::kNoTable || sqlstate == sqlstate::kNoColumn;
}

// Empty without the extension.
std::string version_of_extension(Database& database) {
  const QueryResult rows =
      database.query("SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pg_pulse'");
  return rows.empty() ? std::string() : rows[0].text("extversion");
}

ExitStatus tell_missing(const SqlError& error, Database& database) {
  const std::string version = version_of_extension(database);
  if (version.empty()) {
    print_error("database " + database.name() + " has no pg_pulse (" + error.message + ")", "",
                "CREATE EXTENSION pg_pulse, or -d and the name of another database");
    return ExitStatus::no_database;
  }
  print_error("pg_pulse " + version + " of database " + database.name() +
                  " lacks what pulse " PULSE_VERSION " asks for (" + error.message + ")",
              "", "ALTER EXTENSION pg_pulse UPDATE, or a pulse of the extension's version");
  return ExitStatus::configuration;
}

// As SQL writes a string.
std::string quoted(const std::string& text) {
  std::string literal = "'";
  for (const char letter : text) {
    if (letter == '\'') literal += '\'';
    literal += letter;
  }
  return literal + '\'';
}

}  // namespace

ExitStatus tell_refusal(const SqlError& error, Database& database) {
  if (error.sqlstate == sqlstate::kNoPrivilege) {
    print_error(
        "role " + database.role() + " may not do this (" + error.message + ")", "",
        "the owner of pg_pulse grants the rights to read with SELECT pulse.grant_observer(" +
            quoted(database.role()) +
            "), and to act with grant_operator; to add jobs, "
            "grant_producer; schedules, grant_scheduler");
    return ExitStatus::no_right;
  }
  if (names_what_is_missing(error.sqlstate)) return tell_missing(error, database);
  if (error.sqlstate.starts_with(kUnreadable) && error.hint.empty()) {
    print_error(error.message, error.detail, "--help tells how each value is written");
    return ExitStatus::usage;
  }
  print_error(error.message, error.detail, error.hint);
  return was_interrupted() ? ExitStatus::interrupted : ExitStatus::refused;
}

ExitStatus tell_refusal_of_node_table(const SqlError& error, const Database& database) {
  const auto [reason, hint] = refusal_of_node_table(error, database.name(), database.role());
  print_error(reason, "", hint);
  if (error.sqlstate == sqlstate::kNoTable) return ExitStatus::no_database;
  return error.sqlstate == sqlstate::kNoPrivilege ? ExitStatus::no_right : ExitStatus::refused;
}

ExitStatus report_usage(const std::string& problem) {
  print_error(problem, "", "");
  return ExitStatus::usage;
}

ExitStatus report_unreachable(const std::string& reason) {
  print_error(reason, "", kHowToConnect);
  return ExitStatus::no_database;
}

}  // namespace pulse::console
