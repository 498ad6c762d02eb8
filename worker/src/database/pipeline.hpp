// The calls of one round trip on a libpq connection in pipeline mode: how they are queued and how
// their results become replies. Transactions end where the pipeline is synchronised, and a reply is
// only told once its transaction has ended.
#pragma once

#include <libpq-fe.h>

#include <optional>
#include <set>
#include <string>

#include "database/connection.hpp"

namespace pulse {

// A text field of an error or a notice.
std::string field_of(const PGresult* result, int field);

// The server ended the session with this, or libpq could not read the server: its own errors, such
// as a lack of memory, have no SQLSTATE, and what was asked may have happened.
bool ends_the_session(const PGresult* result);

class Pipeline {
 public:
  enum class Progress { waiting, answered, lost };

  // Nothing is known of the session yet, and nothing is under way.
  void start_session();
  void keep_statements(bool is_ours) { may_prepare_ = is_ours; }

  // Queues the calls. False: libpq refuses, and says why on the connection.
  bool send(PGconn* connection, const Calls& calls, Commit commit);
  bool is_under_way() const { return !steps_.empty(); }
  // Takes what has arrived.
  Progress take_results(PGconn* connection);
  // What the server said before it ended the session, if it did.
  const std::string& farewell() const { return farewell_; }
  // The replies, once all are there.
  Replies finish();
  // The same when no more will come: what has no reply yet is lost.
  Replies give_up(const std::string& reason);

 private:
  // What libpq answers for, one after the other.
  struct Step {
    enum class Kind { prepare, run, sync };
    Kind kind;
    std::size_t call;       // of sync: the first one of its transaction
    std::size_t after = 0;  // of sync: the first one of the next
  };

  bool queue_call(PGconn* connection, const Call& call, std::size_t number);
  void take(const PGresult* result);
  void read_by_rows(PGconn* connection) const;
  void add_rows(std::size_t call, const PGresult* result);
  void take_error(const Step& step, SqlError error);
  void end_transaction(const Step& sync);

  bool may_prepare_ = false;
  std::set<std::string> prepared_;                  // in this session, by name
  std::set<std::string> preparing_;                 // by the calls under way
  std::vector<const char*> names_;                  // of the calls under way
  std::vector<std::optional<std::size_t>> bounds_;  // of their replies, in bytes
  std::size_t bytes_ = 0;                           // of the reply that is being read
  std::vector<Step> steps_;                         // empty: nothing is under way
  std::size_t at_ = 0;
  Replies replies_;
  std::size_t ended_ = 0;   // calls whose transaction has ended
  bool is_failed_ = false;  // the transaction that is being read
  std::string farewell_;
};

}  // namespace pulse
