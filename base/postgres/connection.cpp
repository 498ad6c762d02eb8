#include "base/postgres/connection.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "base/loop/blocking_calls.hpp"
#include "base/loop/unique_fd.hpp"
#include "base/postgres/pipeline.hpp"
#include "base/postgres/sqlstate.hpp"
#include "base/text/exhaustion.hpp"

namespace pulse {
namespace {

struct ConnectionDeleter {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
using ConnectionPtr = std::unique_ptr<PGconn, ConnectionDeleter>;

constexpr std::size_t kSqlstateLength = 5;

std::string without_final_newline(const char* text) {
  std::string line = text == nullptr ? "" : text;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

// libpq has no fields for the server's words about a refused connection, only text. In verbose form
// the text is "FATAL:  28P01: ...", in every language: returns where the last SQLSTATE stands.
std::size_t find_sqlstate(const std::string& message) {
  std::size_t at = message.rfind(":  ");
  while (at != std::string::npos) {
    const std::size_t code = at + 3;
    const auto is_letter = [&](std::size_t i) {
      return (message[i] >= '0' && message[i] <= '9') || (message[i] >= 'A' && message[i] <= 'Z');
    };
    std::size_t length = 0;
    while (code + length < message.size() && is_letter(code + length)) ++length;
    if (length == kSqlstateLength && message[code + length] == ':') return code;
    at = at == 0 ? std::string::npos : message.rfind(":  ", at - 1);
  }
  return at;
}

// Refusals that stay until an operator acts: credentials, role, database, privilege.
bool is_permanent(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 4> kPermanent{
      sqlstate::kInvalidPassword, sqlstate::kInvalidRole, sqlstate::kNoDatabase,
      sqlstate::kNoPrivilege};
  return std::find(kPermanent.begin(), kPermanent.end(), sqlstate) != kPermanent.end();
}

OpenFailure open_failure(const PGconn* connection) {
  if (connection == nullptr) return {"out of memory", false};
  std::string reason = without_final_newline(PQerrorMessage(connection));
  if (PQconnectionNeedsPassword(connection) != 0) return {std::move(reason), true};
  const std::size_t code = find_sqlstate(reason);
  if (code == std::string::npos) return {std::move(reason), false};
  const bool permanent = is_permanent(std::string_view(reason).substr(code, kSqlstateLength));
  reason.resize(std::min(reason.size(), reason.find('\n', code)));  // the rest is a source location
  return {std::move(reason), permanent};
}

// Whether libpq refuses a value, or knows no such service. Only a ping tells this from a host whose
// name is not found now. May take two seconds. The lists end with a null pointer.
bool are_refused_by_libpq(std::vector<const char*> keywords, std::vector<const char*> values) {
  keywords.insert(keywords.end() - 1, "connect_timeout");
  values.insert(values.end() - 1, "2");
  return PQpingParams(keywords.data(), values.data(), /*expand_dbname=*/0) == PQPING_NO_ATTEMPT;
}

// One try to connect, on a separate thread. Shared by the thread and the loop; the thread leaves
// the result here and reports, unless the loop abandoned the attempt in between.
struct Attempt {
  std::vector<ConnectOptions::Option> options;
  UniqueFd abandon_signal{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::function<void()> report;   // guarded by mutex; empty when abandoned
  ConnectionPtr connection;       // written by the thread before the report
  bool is_open = false;           // written by the thread before the report
  bool is_misconfigured = false;  // likewise: libpq refuses the options, and asks no server

  void abandon() noexcept {
    const std::uint64_t one = 1;
    (void)!write(abandon_signal.get(), &one, sizeof one);
    const std::lock_guard lock(mutex);
    report = nullptr;
  }

  // Waits for the socket as libpq asks, until abandoned.
  bool await_socket(PostgresPollingStatusType wish) const {
    std::array<pollfd, 2> descriptors{};
    descriptors[0].fd = PQsocket(connection.get());
    descriptors[0].events = wish == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    descriptors[1].fd = abandon_signal.get();
    descriptors[1].events = POLLIN;
    int ready = 0;
    do {
      ready = poll(descriptors.data(), descriptors.size(), -1);
    } while (ready < 0 && errno == EINTR);
    return ready > 0 && descriptors[1].revents == 0;
  }

  void connect() {
    std::vector<const char*> keywords;
    std::vector<const char*> values;
    for (const ConnectOptions::Option& option : options) {
      keywords.push_back(option.keyword.c_str());
      values.push_back(option.value.c_str());
    }
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    errno = 0;
    connection.reset(PQconnectStartParams(keywords.data(), values.data(), /*expand_dbname=*/0));
    if (!connection || PQstatus(connection.get()) == CONNECTION_BAD) {
      // Without a descriptor libpq finds no user and no file, and the options may be right.
      if (is_exhaustion(errno)) return;
      is_misconfigured = are_refused_by_libpq(std::move(keywords), std::move(values));
      return;
    }
    PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
    // Without one, libpq writes to standard error.
    PQsetNoticeReceiver(
        connection.get(), [](void*, const PGresult*) {}, nullptr);
    PostgresPollingStatusType wish = PGRES_POLLING_WRITING;
    while (wish == PGRES_POLLING_READING || wish == PGRES_POLLING_WRITING) {
      if (!await_socket(wish)) return;
      wish = PQconnectPoll(connection.get());
    }
    is_open = wish == PGRES_POLLING_OK;
  }

  void run() {
    connect();
    const std::lock_guard lock(mutex);
    if (report) report();
  }
};

// A name server that does not answer holds a thread for as long as the resolver likes.
constexpr int kMaxThreads = 8;

std::string why_no_thread(const std::error_code& refused) {
  if (refused == std::errc::device_or_resource_busy) return "name resolution does not answer";
  return "cannot start a thread to connect: " + refused.message();
}

class LibpqConnection final : public Connection {
 public:
  LibpqConnection(EventLoop& loop, ConnectOptions options)
      : loop_(loop), options_(std::move(options)) {}
  ~LibpqConnection() override { close(); }

  void open(OpenHandler handler) override;
  void execute(const Calls& calls, Commit commit, RepliesHandler handler) override;
  void keep_statements(bool is_ours) override { pipeline_.keep_statements(is_ours); }
  void cancel() override;
  void close() noexcept override;

 private:
  void post(std::function<void()> callback);
  void take();
  void start_watching();
  void watch(int events);
  void on_socket(int status, int events);
  void read_results();
  void lose(std::string reason);
  void finish() noexcept;
  std::string last_error() const;
  static void receive_notice(void* self, const PGresult* result);

  EventLoop& loop_;
  ConnectOptions options_;

  // Of attempts, also abandoned attempts, and of cancellations.
  BlockingCalls threads_{kMaxThreads};
  // One cancellation at a time: each waits for a server that may never answer, on a thread that the
  // next connection needs. Shared with that thread, which may outlive this.
  std::shared_ptr<std::atomic<bool>> is_cancelling_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<Attempt> attempt_;  // while connecting
  int generation_ = 0;                // a callback of an earlier generation is dropped
  OpenHandler opened_;

  ConnectionPtr connection_;
  std::unique_ptr<uv_poll_t> socket_;
  Pipeline pipeline_;
  bool has_answered_ = false;  // in this session
  RepliesHandler handler_;     // while something is under way
  std::string farewell_;       // the server's words when the server ended an idle session
};

void LibpqConnection::open(OpenHandler handler) {
  const auto attempt = std::make_shared<Attempt>();
  attempt->options = options_.list();
  attempt->report = [this, generation = generation_] {
    loop_.post([this, generation] {
      if (generation == generation_) take();
    });
  };
  const std::error_code refused = threads_.run([attempt] { attempt->run(); });
  if (refused) {
    return post([handler, refused] { handler(OpenFailure{why_no_thread(refused), false}); });
  }
  opened_ = std::move(handler);
  attempt_ = attempt;
}

// For callers that do not expect a handler before the call returns.
void LibpqConnection::post(std::function<void()> callback) {
  loop_.post([this, generation = generation_, callback = std::move(callback)] {
    if (generation == generation_) callback();
  });
}

void LibpqConnection::take() {
  const std::shared_ptr<Attempt> done = std::move(attempt_);
  Attempt& attempt = *done;
  attempt_.reset();
  const OpenHandler handler = std::move(opened_);
  opened_ = nullptr;
  if (!attempt.is_open) {
    OpenFailure failure = open_failure(attempt.connection.get());
    attempt.connection.reset();
    options_.rotate_hosts();
    failure.is_permanent &= !options_.has_several_hosts();
    failure.is_permanent |= attempt.is_misconfigured;
    handler(std::move(failure));
    return;
  }
  connection_ = std::move(attempt.connection);
  PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
  PQsetNoticeReceiver(connection_.get(), receive_notice, this);
  PQsetnonblocking(connection_.get(), 1);
  PQenterPipelineMode(connection_.get());
  pipeline_.start_session();
  has_answered_ = false;
  start_watching();
  const char* is_superuser = PQparameterStatus(connection_.get(), "is_superuser");
  handler(Opened{PQbackendPID(connection_.get()), PQdb(connection_.get()),
                 PQuser(connection_.get()),
                 is_superuser != nullptr && std::string_view(is_superuser) == "on"});
}

void LibpqConnection::start_watching() {
  socket_ = std::make_unique<uv_poll_t>();
  uv_poll_init(loop_.uv(), socket_.get(), PQsocket(connection_.get()));
  socket_->data = this;
  watch(UV_READABLE);
}

void LibpqConnection::watch(int events) {
  uv_poll_start(socket_.get(), events, [](uv_poll_t* poll, int status, int ready) {
    static_cast<LibpqConnection*>(poll->data)->on_socket(status, ready);
  });
}

void LibpqConnection::execute(const Calls& calls, Commit commit, RepliesHandler handler) {
  handler_ = std::move(handler);
  const bool is_queued = pipeline_.send(connection_.get(), calls, commit);
  const int unsent = is_queued ? PQflush(connection_.get()) : -1;
  if (unsent < 0) {
    post([this, reason = last_error()] { lose(reason); });
  } else if (unsent > 0) {
    watch(UV_READABLE | UV_WRITABLE);
  }
}

void LibpqConnection::on_socket(int status, int events) {
  if (status < 0) return lose(uv_strerror(status));
  if ((events & UV_READABLE) != 0 && PQconsumeInput(connection_.get()) == 0) {
    return lose(last_error());
  }
  const int unsent = PQflush(connection_.get());
  if (unsent < 0) return lose(last_error());
  if (unsent == 0) watch(UV_READABLE);
  if (handler_ && on_moved) on_moved();
  read_results();
}

void LibpqConnection::read_results() {
  Pipeline::Progress progress{};
  try {
    progress = pipeline_.take_results(connection_.get());
  } catch (const std::bad_alloc&) {
    return lose("out of memory for a reply");
  }
  if (progress == Pipeline::Progress::lost) return lose(last_error());
  if (progress == Pipeline::Progress::waiting) return;
  has_answered_ = true;
  const RepliesHandler handler = std::exchange(handler_, nullptr);
  handler(pipeline_.finish());
}

void LibpqConnection::lose(std::string reason) {
  // The server says why before hanging up.
  if (!farewell_.empty()) reason = farewell_;
  if (!pipeline_.farewell().empty()) reason = without_final_newline(pipeline_.farewell().c_str());
  const RepliesHandler handler = std::move(handler_);
  Replies replies = pipeline_.give_up(reason);
  finish();
  if (handler) {
    handler(std::move(replies));
  } else if (on_lost) {
    on_lost(ConnectionLost{std::move(reason)});
  }
}

void LibpqConnection::cancel() {
  if (!connection_ || *is_cancelling_) return;
  PGcancel* cancel = PQgetCancel(connection_.get());
  if (cancel == nullptr) return;
  *is_cancelling_ = true;
  // libpq 15 can only cancel by waiting. If the cancellation has no effect, the caller's deadline
  // closes.
  const auto refused = threads_.run(
      [cancel = std::shared_ptr<PGcancel>(cancel, PQfreeCancel), is_cancelling = is_cancelling_] {
        std::array<char, 256> error{};
        PQcancel(cancel.get(), error.data(), static_cast<int>(error.size()));
        *is_cancelling = false;
      });
  if (refused) *is_cancelling_ = false;
}

void LibpqConnection::close() noexcept {
  if (attempt_) {
    attempt_->abandon();
    attempt_.reset();
    opened_ = nullptr;
    options_.rotate_hosts();
  }
  finish();
}

void LibpqConnection::finish() noexcept {
  ++generation_;
  // The host took the connection and answered nothing: another host may.
  if (connection_ && !has_answered_) options_.rotate_hosts();
  handler_ = nullptr;
  farewell_.clear();
  if (socket_) {
    // Stopped now, before libpq closes the descriptor; freed when libuv lets go of the handle.
    uv_close(reinterpret_cast<uv_handle_t*>(socket_.release()), [](uv_handle_t* handle) {
      const std::unique_ptr<uv_poll_t> owned(reinterpret_cast<uv_poll_t*>(handle));
    });
  }
  connection_.reset();
}

std::string LibpqConnection::last_error() const {
  return without_final_newline(PQerrorMessage(connection_.get()));
}

void LibpqConnection::receive_notice(void* self, const PGresult* result) {
  auto* connection = static_cast<LibpqConnection*>(self);
  const std::string severity = field_of(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == "FATAL") connection->farewell_ = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
  if (connection->on_notice) {
    connection->on_notice(
        Notice{field_of(result, PG_DIAG_SQLSTATE), field_of(result, PG_DIAG_MESSAGE_PRIMARY),
               field_of(result, PG_DIAG_MESSAGE_DETAIL), field_of(result, PG_DIAG_MESSAGE_HINT)});
  }
}

}  // namespace

std::string with_detail(const std::string& message, std::string_view detail) {
  if (detail.ends_with('.')) detail.remove_suffix(1);
  return detail.empty() ? message : message + " (" + std::string(detail) + ')';
}

std::unique_ptr<Connection> make_connection(EventLoop& loop, ConnectOptions options) {
  return std::make_unique<LibpqConnection>(loop, std::move(options));
}

}  // namespace pulse
