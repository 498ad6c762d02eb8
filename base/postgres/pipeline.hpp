// Pipeline: the calls of one round trip on a libpq connection in pipeline mode: how calls are
// queued and how results become replies.
//
// Invariants (only the loop's thread reads and writes):
// - A transaction ends where the pipeline is synchronised, and a reply is told only once its
//   transaction has ended.
// - `steps_` has a step for each answer that libpq owes; `at_` is the step being read. Empty
//   `steps_`: nothing is under way.
// - `prepared_` names only statements that the server has prepared in this session.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/postgres/connection.hpp"

namespace pulse {

struct ResultDeleter {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ResultDeleter>;

// A text field of an error or a notice.
std::string field_of(const PGresult* result, int field);

// The server ended the session with this result, or libpq could not read the server: libpq's own
// errors, as a lack of memory, have no SQLSTATE, and the statement may have happened.
bool ends_the_session(const PGresult* result);

SqlError error_of(const PGresult* result);
// All rows, whatever their size.
QueryResult rows_of(const PGresult* result);

class Pipeline {
 public:
  enum class Progress { waiting, answered, lost };

  // Nothing is known of the session yet, and nothing is under way.
  void start_session();
  void keep_statements(bool is_ours) { may_prepare_ = is_ours; }

  // Queues the calls. False: libpq refuses, and says why on the connection.
  bool send(PGconn* connection, const Calls& calls, Commit commit);
  bool is_under_way() const { return !steps_.empty(); }
  // Reads the results that have arrived.
  Progress take_results(PGconn* connection);
  // The server's last words before the server ended the session; empty if the session goes on.
  const std::string& farewell() const { return farewell_; }
  // The replies, once all are there.
  Replies finish();
  // The same when no more replies will come: each call without a reply is lost.
  Replies give_up(const std::string& reason);

 private:
  // The parts that libpq answers, one after the other.
  struct Step {
    enum class Kind { prepare, run, sync };
    Kind kind;
    std::size_t call;       // of sync: the first call of the transaction
    std::size_t after = 0;  // of sync: the first call of the next transaction
  };

  bool queue_call(PGconn* connection, const Call& call, std::size_t number);
  void take(const PGresult* result);
  void read_by_rows(PGconn* connection) const;
  void add_rows(std::size_t call, const PGresult* result);
  void take_error(const Step& step, SqlError error);
  void end_transaction(const Step& sync);

  bool may_prepare_ = false;
  std::set<std::string> prepared_;   // in this session, by name
  std::set<std::string> preparing_;  // by the calls under way
  std::vector<const char*> names_;   // of the calls under way
  // of the replies, in bytes, for each call under way
  std::vector<std::optional<std::size_t>> bounds_;
  std::size_t bytes_ = 0;    // of the reply that is being read
  std::vector<Step> steps_;  // empty: nothing is under way
  std::size_t at_ = 0;
  Replies replies_;
  std::size_t ended_ = 0;   // calls whose transaction has ended
  bool is_failed_ = false;  // the transaction that is being read
  std::string farewell_;
};

}  // namespace pulse
