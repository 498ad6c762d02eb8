// A session that comes back: it opens a connection, sets it up, reconnects after a loss, and gives
// every wait a deadline. After a deadline the socket is closed, never used again.
//
// Each part of the worker that sends statements adds a sender. The session asks its senders in turn
// whenever the connection is free. So what travels is decided as late as possible, and batches fill
// by themselves. Belongs to the loop's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "database/connection.hpp"
#include "database/reconnect.hpp"
#include "database/repeats.hpp"
#include "log/log.hpp"

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

  // Opens and keeps open until close(), or while it is used if it borrows.
  void open();
  // No callback comes afterwards, also not for what is under way.
  void close();

  void add_sender(Sender sender) { senders_.push_back(std::move(sender)); }
  // A sender has something to send: the senders are asked at the end of this turn of the loop.
  void wake() {
    is_needed_ = true;
    asking_.start_soon();
  }
  // The same for what may wait until a connection is free: none is opened for it.
  void wake_if_free() { asking_.start_soon(); }
  // Whether a sender may send.
  bool is_free() const { return (is_lent_ ? lender_ : this)->state_ == State::free; }

  // Only from a sender. The handler gets ConnectionLost if there is no answer within `deadline`.
  void send(const Statement& statement, Params params, Duration deadline, ReplyHandler handler);
  // Several in one round trip; each has its handler, called in their order when all are over.
  void send(Calls calls, Commit commit, Duration deadline, std::vector<ReplyHandler> handlers);
  // What makes the open session as new before a call. Nothing behind a pooler: what is there may be
  // another client's.
  Calls renewal() const;
  // Cancels what is running, until there is an answer; its handler gets that.
  void cancel();
  // Closes the socket: the handler of what is running gets ConnectionLost. It is opened again.
  void drop(const std::string& reason);

  // Once `leader` is open, what waits here to be opened is opened at once. If that one had hung,
  // what stands still here may hang too, and is opened again. So an outage has few tries, and a
  // worker is back at work soon after the network.
  void follow(Session& leader) { leader.followers_.push_back(this); }
  // From now on this session is opened when it is needed, and closed ten seconds after it was last
  // needed. While it rests, what is in no hurry is sent over `lender` when that is free; while it
  // is not to be had, everything is. So a worker that has nothing to report takes a session less of
  // the server, also one that sweeps.
  void borrow_from(Session& lender);
  // The borrower's senders are asked, if it has no connection of its own. Whether one has sent.
  bool ask_borrower() { return borrower_ != nullptr && borrower_->send_over_lender(); }
  // It was lost or refused, and is not back.
  bool is_failing() const { return state_ != State::closed && !last_reason_.empty(); }

  // The leader was opened, in a try that began then.
  void hurry(TimePoint opened_since, bool had_hung);

  bool is_open() const { return state_ == State::free || state_ == State::busy; }
  // Since when every try to open it was refused in a way that is for good, if the last one was.
  std::optional<TimePoint> refused_since() const { return refused_since_; }
  bool was_open() const { return !role_.empty(); }
  bool is_wanted() const { return state_ != State::closed && state_ != State::resting; }
  // Session state may not be kept for us: a pooler stands between.
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
  // The session is gone and will be opened again; comes after the handler of what was running.
  std::function<void(const std::string& reason)> on_lost;
  // The server refuses to open it in a way that is for good, unless the server is about to change;
  // opening goes on all the same. Comes with each try.
  std::function<void(const std::string& reason)> on_refused;
  // The server's answers have another shape than this program expects.
  std::function<void(const std::string& reason)> on_unreadable;
  std::function<void(const Notice&)> on_notice;

 private:
  enum class State { closed, resting, pausing, opening, setting_up, free, busy };

  void ask_senders();
  void ask_in_turn();
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
  // A handler may close the session and open it again: what was under way before that is over.
  std::uint64_t closes_ = 0;
  bool is_pooled_ = false;
  std::string database_;
  std::string role_;
  int backend_pid_ = 0;
  bool is_superuser_ = false;
  TimePoint opening_since_{};
  TimePoint opened_at_{};
  TimePoint moved_at_{};   // when bytes last came or went
  TimePoint needed_at_{};  // when a sender last had what could not wait
  bool had_hung_ = false;  // its last connection, or try, gave no answer in time
  std::vector<Session*> followers_;
  Session* lender_ = nullptr;
  Session* borrower_ = nullptr;
  bool is_needed_ = false;  // something waits to be sent
  bool is_cut_ = false;     // it was open when it was lost
  bool is_lent_ = false;    // the senders are asked for the lender's connection
  std::optional<TimePoint> refused_since_;
  std::vector<ReplyHandler> handlers_;
  std::string running_;      // names of the statements under way
  std::string last_reason_;  // of the last loss
  Repeats losses_;
  std::vector<Sender> senders_;
  std::size_t next_sender_ = 0;

  Duration patience_{};        // with what is running
  TimePoint last_deadline_{};  // of it, whatever moves
  Timer deadline_;
  Timer cancelling_;
  Timer pause_;
  Timer asking_;
  Timer resting_;
  Timers& timers_;
};

}  // namespace pulse
