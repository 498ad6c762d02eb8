#include "database/database.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/postgres/array_literal.hpp"
#include "base/postgres/pipeline.hpp"
#include "base/postgres/session_settings.hpp"
#include "database/interrupt.hpp"

namespace pulse::console {
namespace {

struct ResultDeleter {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ResultDeleter>;

SqlError fields_of(const PGresult* result) {
  return {field_of(result, PG_DIAG_SQLSTATE), field_of(result, PG_DIAG_MESSAGE_PRIMARY),
          field_of(result, PG_DIAG_MESSAGE_DETAIL), field_of(result, PG_DIAG_MESSAGE_HINT),
          field_of(result, PG_DIAG_CONTEXT)};
}

QueryResult rows_of(const PGresult* result) {
  std::vector<std::string> columns;
  std::vector<QueryResult::Cell> cells;
  const int width = PQnfields(result);
  for (int column = 0; column < width; ++column) columns.emplace_back(PQfname(result, column));
  for (int row = 0; row < PQntuples(result); ++row) {
    for (int column = 0; column < width; ++column) {
      if (PQgetisnull(result, row, column) != 0) {
        cells.emplace_back();
      } else {
        cells.emplace_back(std::string(PQgetvalue(result, row, column),
                                       static_cast<std::size_t>(PQgetlength(result, row, column))));
      }
    }
  }
  return {std::move(columns), std::move(cells)};
}

// libpq ends its messages with a newline.
std::string reason_of(const PGconn* connection, const std::string& fallback) {
  std::string reason = connection == nullptr ? "out of memory" : PQerrorMessage(connection);
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  return reason.empty() ? fallback : reason;
}

// Behind a pooler the process is another process, and the statement sets nothing: another client
// would inherit the settings.
constexpr const char* kSetUp =
    "SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, false))"
    " FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]),"
    " pg_catalog.unnest($3::pg_catalog.text[])) AS s(name, value)"
    " JOIN pg_catalog.pg_settings AS p"
    " ON p.name OPERATOR(pg_catalog.=) s.name AND p.source OPERATOR(pg_catalog.<>) 'client'"
    " WHERE pg_catalog.int4eq(pg_catalog.pg_backend_pid(), $1::integer)";

Params settings_params(int backend_pid) {
  statements::SessionSettings settings = statements::own_settings();
  settings.insert(settings.end(), {{"extra_float_digits", "1"}, {"IntervalStyle", "postgres"}});
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& [name, value] : settings) {
    names.push_back(name);
    values.push_back(value);
  }
  return {std::to_string(backend_pid), array_literal(names), array_literal(values)};
}

}  // namespace

Database::Database(ConnectOptions options) : options_(std::move(options)) {}

void Database::open() {
  if (connection_) return;
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const ConnectOptions::Option& option : options_.list()) {
    keywords.push_back(option.keyword.c_str());
    values.push_back(option.value.c_str());
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.deadline());
  const std::string timeout = std::to_string(seconds.count());
  keywords.insert(keywords.end(), {"connect_timeout", nullptr});
  values.insert(values.end(), {timeout.c_str(), nullptr});
  connection_.reset(PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/0));
  if (!connection_ || PQstatus(connection_.get()) != CONNECTION_OK) lose("no connection");
  set_up();
}

// Neither the output nor the changes may depend on settings of the role or the database. Settings
// of the user in PGOPTIONS stay.
void Database::set_up() {
  PQsetNoticeReceiver(
      connection_.get(),
      [](void* self, const PGresult* notice) {
        const auto& tell = static_cast<Database*>(self)->on_notice;
        if (tell) tell(fields_of(notice));
      },
      this);
  name_ = PQdb(connection_.get());
  role_ = PQuser(connection_.get());
  quickest_ = std::chrono::microseconds::max();
  query("SET datestyle = 'ISO, YMD'");
  query(kSetUp, settings_params(backend_pid()));
}

void Database::note_answer_after(std::chrono::microseconds taken) {
  quickest_ = std::min(quickest_, taken);
  worked_ += taken - quickest_;
}

// The server's last message of a session comes before the end of the connection.
bool Database::has_lived_on() {
  while (connection_) {
    pollfd descriptor{PQsocket(connection_.get()), POLLIN, 0};
    if (poll(&descriptor, 1, 0) == 0) return true;
    if (PQconsumeInput(connection_.get()) == 0) close();
  }
  return false;
}

void Database::lose(const std::string& fallback) {
  std::string reason = reason_of(connection_.get(), fallback);
  connection_.reset();
  throw Unreachable(reason);
}

QueryResult Database::query(const char* sql, const Params& params) {
  open();
  std::vector<const char*> values;
  values.reserve(params.size());
  for (const auto& param : params) values.push_back(param ? param->c_str() : nullptr);
  const InterruptCancels cancels(connection_.get());
  const auto start = std::chrono::steady_clock::now();
  const ResultPtr result(PQexecParams(connection_.get(), sql, static_cast<int>(values.size()),
                                      nullptr, values.data(), nullptr, nullptr, 0));
  note_answer_after(
      std::chrono::ceil<std::chrono::microseconds>(std::chrono::steady_clock::now() - start));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return rows_of(result.get());
  if (PQstatus(connection_.get()) == CONNECTION_BAD || ends_the_session(result.get())) {
    lose("the session has ended");
  }
  throw Refused(fields_of(result.get()));
}

std::optional<std::string> Database::wait_for_notification(Duration max_wait) {
  open();
  const auto end = std::chrono::steady_clock::now() + max_wait;
  for (;;) {
    if (PQconsumeInput(connection_.get()) == 0) lose("the session has ended");
    if (PGnotify* notify = PQnotifies(connection_.get())) {
      std::string payload = notify->extra;
      PQfreemem(notify);
      return payload;
    }
    const auto left = std::chrono::duration_cast<Duration>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd descriptor{PQsocket(connection_.get()), POLLIN, 0};
    if (poll(&descriptor, 1, static_cast<int>(left.count())) < 0) return std::nullopt;
  }
}

}  // namespace pulse::console
