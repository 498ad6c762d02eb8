#include "task/function/tasks.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/postgres/session_settings.hpp"
#include "base/text/utf8.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxErrorBytes = 8 * 1024;
constexpr Duration kKeptIdle = 10s;
// A job's own limits end the function (see executor.hpp), not a wait for the answer.
constexpr Duration kNoDeadline = std::chrono::hours(24 * 365);
// Up to this number of free sessions of other tasks stay untouched, and a job gets another session:
// to renew a session costs the server as much as several jobs.
constexpr std::size_t kMaxSpare = 4;
// With a server that gives no session: the job goes back, to a worker that may get one.
constexpr Duration kOpenPatience = 5s;
// The answer to a cancel may be that the function has completed the job after all.
constexpr Duration kMinGrace = 1s;

SessionConfig function_session_config(Duration open_deadline) {
  SessionConfig config;
  config.name = "sql task";
  config.open_deadline = open_deadline;
  config.settings = statements::shared_settings();
  config.settings.emplace_back("client_connection_check_interval", "1s");
  return config;
}

// In pg_stat_activity, which every role may read: the names of tasks are for roles that may read
// jobs.
std::string session_name(const TaskInput& input) {
  return "pulse-worker job " + std::to_string(input.job_id) + ", " + input.worker_name;
}

ExecutionEnd lost_end(const std::string& reason) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::session_lost;
  end.error = "the session of its function was lost: " + reason;
  return end;
}

ExecutionEnd unopened_end(const std::string& reason) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::not_started;
  end.is_transient = true;
  end.error = "no session for its function: " + reason;
  return end;
}

ExecutionEnd end_of(const Reply& reply) {
  if (const auto* lost = std::get_if<ConnectionLost>(&reply)) return lost_end(lost->reason);
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::completed;
  if (const auto* error = std::get_if<SqlError>(&reply)) {
    end.kind = ExecutionEnd::Kind::refused;
    end.sqlstate = error->sqlstate;
    end.error = describe_error(*error);
  }
  return end;
}

}  // namespace

// One session with at most one function running. perform_job leaves nothing of a job in the
// session; before a job of another task the session is renewed all the same.
class FunctionTasks::FunctionSession {
 public:
  FunctionSession(std::unique_ptr<Connection> connection, Duration open_deadline, Timers& timers,
                  const Random& random, Log& log)
      : timers_(timers),
        connection_(std::move(connection)),
        session_(function_session_config(open_deadline), *connection_, timers, Reconnect(random),
                 log),
        idle_(timers, [this] { close(); }),
        opening_(timers, [this] { give_up_opening(); }),
        grace_(timers, [this] { give_up(); }) {
    session_.add_sender([this] { return send_next(); });
    session_.on_lost = [this](const std::string& reason) {
      last_reason_ = reason;
      task_.clear();
      if (!run_) return session_.close();
      if (on_refused) on_refused();
    };
  }

  bool is_free() const { return !run_; }
  // The task of the last job since the session was opened; empty before the first.
  const std::string& task() const { return task_; }
  // Since when the session has been free.
  TimePoint free_since() const { return free_since_; }

  void start(ClaimKey claim, std::string task, std::string name,
             std::function<void(const ExecutionEnd&)> on_end) {
    run_ = Run{claim, std::move(task), std::move(name), std::move(on_end)};
    idle_.stop();
    last_reason_ = "no answer in time";
    opening_.start_in(kOpenPatience);
    session_.open();
    session_.wake();
  }

  void terminate(Duration grace) {
    if (!run_) return;
    grace_.start_in(run_->is_sent ? std::max(grace, kMinGrace) : Duration::zero());
    if (!run_->is_sent) return;
    run_->is_cancelled = true;
    session_.cancel();
  }

  // Of the server's process, while the function runs there.
  std::optional<std::int64_t> pid() const {
    return run_ && run_->is_sent ? session_.backend_pid() : std::nullopt;
  }

  // The executor has let go of the execution.
  void abandon() {
    if (!run_) return;
    close();
    forget();
  }

  void close() {
    idle_.stop();
    session_.close();
    task_.clear();
  }

  // A job waits for this session, and the session cannot be opened now.
  std::function<void()> on_refused;

 private:
  struct Run {
    ClaimKey claim;
    std::string task;
    std::string name;  // of the session meanwhile
    std::function<void(const ExecutionEnd&)> on_end;
    bool is_sent = false;
    bool is_cancelled = false;
  };

  bool send_next() {
    if (!run_ || run_->is_sent) return false;
    run_->is_sent = true;
    opening_.stop();
    Calls calls;
    if (!task_.empty() && task_ != run_->task) calls = session_.renewal();
    std::vector<ReplyHandler> handlers(calls.size(), [](const Reply&) {});
    task_ = run_->task;
    calls.push_back(
        {statements::kPerformJob,
         {std::to_string(run_->claim.job_id), std::to_string(run_->claim.token), run_->name}});
    handlers.emplace_back([this](const Reply& reply) { end(end_of(reply)); });
    session_.send(std::move(calls), Commit::each, kNoDeadline, std::move(handlers));
    return true;
  }

  void give_up_opening() {
    close();
    end(unopened_end(last_reason_));
  }

  void give_up() {
    close();
    end(lost_end("no answer to its cancellation"));
  }

  void end(const ExecutionEnd& end) {
    const auto on_end = run_->on_end;
    const bool was_cancelled = run_->is_cancelled;
    forget();
    // A cancellation may still be under way, and would end the next job of this session. After an
    // error the state that the function has left is unknown.
    if (was_cancelled || end.kind == ExecutionEnd::Kind::refused)
      close();
    else
      idle_.start_in(kKeptIdle);
    on_end(end);
  }

  void forget() {
    run_.reset();
    free_since_ = timers_.now();
    opening_.stop();
    grace_.stop();
  }

  Timers& timers_;
  const std::unique_ptr<Connection> connection_;
  Session session_;
  std::optional<Run> run_;
  std::string task_;
  TimePoint free_since_{};
  std::string last_reason_;  // why there is no session
  Timer idle_;
  Timer opening_;
  Timer grace_;
};

class FunctionTasks::Running final : public Execution {
 public:
  explicit Running(FunctionSession& session) : session_(session) {}
  ~Running() override {
    if (!has_ended_) session_.abandon();
  }
  void start(const HeldJob& job, std::function<void(const ExecutionEnd&)> on_end) {
    session_.start(job.key(), job.job.input.identifier, session_name(job.job.input),
                   [this, on_end = std::move(on_end)](const ExecutionEnd& end) {
                     // The session may be another's by the time this is destroyed.
                     has_ended_ = true;
                     on_end(end);
                   });
  }
  void ping(TimePoint) override {}  // the server's own limits end the function
  std::optional<std::int64_t> pid() const override {
    return has_ended_ ? std::nullopt : session_.pid();
  }
  void terminate(Duration grace) override {
    if (!has_ended_) session_.terminate(grace);
  }

 private:
  FunctionSession& session_;
  bool has_ended_ = false;
};

FunctionTasks::FunctionTasks(MakeConnection make_connection, Duration open_deadline, Timers& timers,
                             Random random, Log& log)
    : make_connection_(std::move(make_connection)),
      open_deadline_(open_deadline),
      timers_(timers),
      random_(std::move(random)),
      log_(log) {}

FunctionTasks::~FunctionTasks() = default;

// A session that has served the task; else a new session; with enough sessions of other tasks the
// session that was free for longest, to be renewed.
FunctionTasks::FunctionSession& FunctionTasks::free_session(const std::string& task) {
  FunctionSession* closed = nullptr;
  FunctionSession* longest = nullptr;
  std::size_t spare = 0;
  for (const auto& session : sessions_) {
    if (!session->is_free()) continue;
    if (session->task() == task) return *session;
    if (session->task().empty()) {
      closed = session.get();
      continue;
    }
    ++spare;
    if (longest == nullptr || session->free_since() < longest->free_since())
      longest = session.get();
  }
  if (spare > kMaxSpare) return *longest;
  return closed != nullptr ? *closed : new_session();
}

FunctionTasks::FunctionSession& FunctionTasks::new_session() {
  sessions_.push_back(std::make_unique<FunctionSession>(make_connection_(), open_deadline_, timers_,
                                                        random_, log_));
  sessions_.back()->on_refused = [this] { close_spare(); };
  return *sessions_.back();
}

// The server may have too few sessions for all idle sessions beside the running jobs.
void FunctionTasks::close_spare() {
  for (const auto& session : sessions_)
    if (session->is_free()) session->close();
}

ExecutionStart FunctionTasks::start(const HeldJob& job, ExecutionCallbacks callbacks) {
  auto running = std::make_unique<Running>(free_session(job.job.input.identifier));
  running->start(job, std::move(callbacks.on_end));
  return {std::move(running), false, {}};
}

std::string describe_error(const SqlError& error) {
  std::string text = error.sqlstate + ": " + error.message;
  const auto add = [&text](const char* label, const std::string& part) {
    if (!part.empty()) text += std::string("\n") + label + ": " + part;
  };
  add("DETAIL", error.detail);
  add("HINT", error.hint);
  add("CONTEXT", error.context);
  return std::string(utf8_prefix(text, kMaxErrorBytes));
}

}  // namespace pulse
