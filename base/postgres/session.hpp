// Session: a session with the database that comes back after a loss. It opens a connection, sets it
// up, reconnects after a loss, and gives every wait a deadline. After a deadline it closes the
// socket and never uses it again.
//
// Each part of the worker that sends statements adds a sender. The session asks the senders one
// after another whenever the connection is free. So the choice of the next statement falls as late
// as possible, and batches fill by themselves.
//
// Invariants (only the loop's thread reads and writes):
// - `state_` names the one thing that the session does. `deadline_` runs while a connection is
//   being opened or set up, and while a statement runs.
// - `handlers_` has one handler for each call under way. Each handler is called once, unless
//   close() comes first or an earlier handler finds an answer unreadable.
// - `closes_` counts the closes: a callback that sees another count than at the start goes no
//   further.
// - `lender_` and `borrower_` point at each other; `is_lent_` is true only while the senders are
//   asked for the lender's connection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log/log.hpp"
#include "base/postgres/connection.hpp"
#include "base/postgres/reconnect.hpp"
#include "base/postgres/repeats.hpp"

namespace pulse {

struct SessionConfig {
  std::string name;  // in logs
  Duration open_deadline = std::chrono::seconds(5);
  // The deadline of a statement counts from the last byte that came or went, up to twenty times.
  bool waits_for_bytes = false;
  Duration max_reconnect_delay = Duration::max();
  // Of the session, name and value; the last of a name counts.
  std::vector<std::pair<std::string, std::string>> settings;
};

using ReplyHandler = std::function<void(Reply)>;

class Session {
 public:
  // Sends one statement with send() and returns true, or has nothing to send.
  using Sender = std::function<bool()>;

  Session(SessionConfig config, Connection& connection, Timers& timers, Reconnect reconnect,
          Log& log);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Opens and keeps open until close(). A session that borrows stays open only while needed.
  void open();
  // No callback comes afterwards, also not for calls under way.
  void close();

  void add_sender(Sender sender) { senders_.push_back(std::move(sender)); }
  // A sender has something to send: the senders are asked at the end of this iteration of the loop.
  void wake() {
    is_needed_ = true;
    asking_.start_soon();
  }
  // The same for a statement that may wait until a connection is free: the session opens no
  // connection for such a statement.
  void wake_if_free() { asking_.start_soon(); }
  // Whether a sender may send.
  bool is_free() const { return (is_lent_ ? lender_ : this)->state_ == State::free; }

  // Only from a sender. The handler gets ConnectionLost if there is no answer within `deadline`.
  void send(const Statement& statement, Params params, Duration deadline, ReplyHandler handler);
  // Several calls in one round trip. Each call has a handler; the handlers are called in the order
  // of the calls when all calls are over.
  void send(Calls calls, Commit commit, Duration deadline, std::vector<ReplyHandler> handlers);
  // The calls that make the open session as new before another call. Nothing behind a pooler: the
  // state there may be another client's.
  Calls renewal() const;
  // Cancels the running statement, until there is an answer; the statement's handler gets the
  // answer.
  void cancel();
  // Closes the socket: the handler of the running statement gets ConnectionLost. The session is
  // opened again.
  void drop(const std::string& reason);

  // Once `leader` is open, this session ends a pause and opens at once. If `leader` had hung, a
  // session here that stands still may hang too, and is opened again. So an outage has few tries,
  // and a worker is back at work soon after the network.
  void follow(Session& leader) { leader.followers_.push_back(this); }
  // From now on this session opens only when needed, and closes ten seconds after the last need.
  // While the session rests, statements that can wait are sent over `lender` when `lender` is free;
  // while the session cannot be opened, all statements are. So a worker with nothing to report,
  // even one that sweeps, takes a session less of the server.
  void borrow_from(Session& lender);
  // Asks the borrower's senders, if the borrower has no connection of its own. Says whether a
  // sender has sent.
  bool ask_borrower() { return borrower_ != nullptr && borrower_->send_over_lender(); }
  // The connection was lost or refused, and is not back.
  bool is_failing() const { return state_ != State::closed && !last_reason_.empty(); }

  // The leader was opened, in a try that began then.
  void hurry(TimePoint opened_since, bool had_hung);

  bool is_open() const { return state_ == State::free || state_ == State::busy; }
  // Since when the server has refused every try to open the session for good; nothing if the last
  // try was not refused so.
  std::optional<TimePoint> refused_since() const { return refused_since_; }
  bool was_open() const { return !role_.empty(); }
  bool is_wanted() const { return state_ != State::closed && state_ != State::resting; }
  // The server keeps no state for this session: a pooler stands between.
  bool is_pooled() const { return is_lent_ ? lender_->is_pooled_ : is_pooled_; }
  // Whose session this is; empty before the first.
  const std::string& database() const { return database_; }
  const std::string& role() const { return role_; }
  // The server's process; nothing without a connection, and behind a pooler.
  std::optional<std::int64_t> backend_pid() const {
    return is_open() && !is_pooled_ ? std::optional<std::int64_t>(backend_pid_) : std::nullopt;
  }
  // Why the connection was lost, or not to be had; empty while there is one.
  const std::string& last_reason() const { return last_reason_; }
  // Functions of the database would run with all rights.
  void warn_of_superuser() const;
  void set_reconnect_cap(Duration cap) {
    reconnect_.set_cap(std::min(cap, config_.max_reconnect_delay));
  }

  // A pooler stands between; comes with each opening, before on_opened.
  std::function<void()> on_pooled;
  // The session is set up; comes before the senders are asked.
  std::function<void()> on_opened;
  // The connection is gone and will be opened again; comes after the handler of the running
  // statement.
  std::function<void(const std::string& reason)> on_lost;
  // The server refuses for good to open the session, unless the server is about to change; opening
  // goes on all the same. Comes with each try.
  std::function<void(const std::string& reason)> on_refused;
  // The server's answers have another shape than this program expects.
  std::function<void(const std::string& reason)> on_unreadable;
  std::function<void(const Notice&)> on_notice;

 private:
  enum class State { closed, resting, pausing, opening, setting_up, free, busy };

  void ask_senders();
  void ask_each_sender();
  bool send_over_lender();
  void rest_if_idle();
  void end_pause();
  void start_opening();
  void set_up(const Opened& opened);
  Call set_up_call(int backend_pid) const;
  void finish_set_up(const Opened& opened, const Reply& reply);
  void answer(Replies replies);
  void extend_deadline();
  void give_up();
  void lose(const std::string& reason);

  const SessionConfig config_;
  Connection& connection_;
  Reconnect reconnect_;
  Log& log_;

  State state_ = State::closed;
  // A handler may close the session and open it again: calls that were under way before are over.
  std::uint64_t closes_ = 0;
  bool is_pooled_ = false;
  std::string database_;
  std::string role_;
  int backend_pid_ = 0;
  bool is_superuser_ = false;
  TimePoint opening_since_{};
  TimePoint opened_at_{};
  TimePoint moved_at_{};   // when bytes last came or went
  TimePoint needed_at_{};  // when a sender last had a statement that could not wait
  bool had_hung_ = false;  // the last connection, or try, gave no answer in time
  std::vector<Session*> followers_;
  Session* lender_ = nullptr;
  Session* borrower_ = nullptr;
  bool is_needed_ = false;  // something waits to be sent
  bool is_cut_ = false;     // the connection was open when it was lost
  bool is_lent_ = false;    // the senders are asked for the lender's connection
  std::optional<TimePoint> refused_since_;
  std::vector<ReplyHandler> handlers_;
  std::string running_;      // names of the statements under way
  std::string last_reason_;  // of the last loss
  Repeats losses_;
  std::vector<Sender> senders_;
  std::size_t next_sender_ = 0;

  Duration patience_{};        // with the running statement
  TimePoint last_deadline_{};  // of the running statement, however many bytes move
  Timer deadline_;
  Timer cancelling_;
  Timer pause_;
  Timer asking_;
  Timer resting_;
  Timers& timers_;
};

}  // namespace pulse
