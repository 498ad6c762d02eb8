// One session with the database for benchmarks and proofs: prepared statements, binary values, and
// a pipeline that sends several statements in one round trip. A session belongs to one thread.
// Where to connect comes from libpq's environment (PGHOST, PGPORT, PGUSER, PGDATABASE).
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bench {

// The server refused a statement; the session goes on.
class SqlError : public std::runtime_error {
 public:
  SqlError(std::string sqlstate, const std::string& message)
      : std::runtime_error(sqlstate + ": " + message), sqlstate_(std::move(sqlstate)) {}
  const std::string& sqlstate() const { return sqlstate_; }

 private:
  std::string sqlstate_;
};

// The session is gone; what was asked last may or may not have happened.
class ConnectionLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Ids = std::vector<std::int64_t>;
using Value = std::variant<std::monostate, std::int64_t, std::string, Ids>;  // monostate is NULL
using Values = std::vector<Value>;

// The rows of one statement. Columns are read by position; numbers are of any integer type.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int count() const { return PQntuples(result_.get()); }
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::int64_t number(int row, int column) const;
  std::string_view text(int row, int column) const;

 private:
  std::unique_ptr<PGresult, decltype(&PQclear)> result_;
};

class Session {
 public:
  // application_name tells sessions apart in pg_stat_activity.
  explicit Session(const std::string& application_name);

  // Runs any number of statements without values or rows.
  void script(const std::string& sql);
  // Runs one statement in a transaction of its own (or in the block that was begun).
  Rows run(const std::string& sql, const Values& values = {});
  // The first number of the first row.
  std::int64_t number(const std::string& sql, const Values& values = {});
  std::string text(const std::string& sql, const Values& values = {});

  // Pipelining: what is sent before one flush() is one transaction. Statements must be prepared.
  void prepare(const std::string& sql);
  void start_pipeline();
  void send(const std::string& sql, const Values& values);
  void flush();
  Rows next_rows();     // of the oldest statement that was sent
  void end_of_flush();  // after the rows of all its statements: true ends of transactions
  void stop_pipeline();

 private:
  struct Encoded;
  const std::string& name_of(const std::string& sql);
  PGresult* checked(PGresult* result);
  [[noreturn]] void lose();

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::map<std::string, std::string> prepared_;
};

}  // namespace bench
