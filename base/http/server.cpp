#include "base/http/server.hpp"

#include <microhttpd.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>

#include "base/http/socket.hpp"
#include "base/loop/signals_blocked.hpp"

namespace pulse {
namespace {

// Headers of which a second would be read by one program and not by the next.
constexpr std::array<std::string_view, 7> kOnce{
    "host",         "authorization", "content-length", "transfer-encoding",
    "content-type", "origin",        "idempotency-key"};

// A client that does not take an answer holds the end up for this long.
constexpr std::chrono::seconds kFarewell(1);

// libmicrohttpd complains of each broken request; broken requests are the client's affair.
void say_nothing(void* /*server*/, const char* /*format*/, va_list /*values*/) {}

// Paths and queries stay as sent: the reader decodes, once.
std::size_t leave_encoded(void* /*server*/, MHD_Connection* /*connection*/, char* text) {
  return std::strlen(text);
}

MHD_Result read_header(void* to, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  auto* request = static_cast<HttpRequest*>(to);
  std::string key(name);
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto [entry, is_new] = request->headers.try_emplace(key, value == nullptr ? "" : value);
  // A proxy may read a name that ends in a blank as the name without the blank.
  if (key.empty() || key.back() == ' ' || key.back() == '\t') request->is_ambiguous = true;
  // Each proxy adds a line, or to the line.
  if (!is_new && key == "x-forwarded-for" && value != nullptr) {
    entry->second += std::string(", ") + value;
  }
  if (!is_new && std::find(kOnce.begin(), kOnce.end(), key) != kOnce.end()) {
    request->is_ambiguous = true;
  }
  return MHD_YES;
}

ssize_t read_stream(void* stream, std::uint64_t /*position*/, char* buffer, std::size_t size) {
  return (*static_cast<std::shared_ptr<HttpStream>*>(stream))->read(buffer, size);
}

void free_stream(void* stream) { delete static_cast<std::shared_ptr<HttpStream>*>(stream); }

MHD_Response* body_of(const HttpResponse& response) {
  if (!response.stream) {
    // libmicrohttpd takes no pointer to constant bytes, though the bytes are copied.
    return MHD_create_response_from_buffer(
        response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  }
  constexpr std::size_t kBlock = 16UL * 1024;
  return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, read_stream,
                                           new std::shared_ptr<HttpStream>(response.stream),
                                           free_stream);
}

MHD_Result queue(MHD_Connection* connection, const HttpResponse& response) {
  MHD_Response* const made = body_of(response);
  if (made == nullptr) return MHD_NO;
  if (!response.type.empty()) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  }
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(made, name.c_str(), value.c_str());
  }
  const MHD_Result result = MHD_queue_response(connection, response.status, made);
  MHD_destroy_response(made);
  return result;
}

}  // namespace

// The callbacks of libmicrohttpd, on the server's thread. C code is not unwound: where memory is
// out, the connection is closed.
struct HttpCallbacks {
  using Visit = HttpServer::Visit;

  static HttpClient* client_of(MHD_Connection* connection) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == nullptr ? nullptr : static_cast<HttpClient*>(info->socket_context);
  }

  static void expect(HttpServer* self, MHD_Connection* connection,
                     std::optional<std::chrono::milliseconds> patience,
                     bool is_between_requests = false) {
    if (HttpClient* client = client_of(connection)) {
      self->clients_.expect(client, patience, is_between_requests);
    }
  }

  static void notice_connection(void* server, MHD_Connection* connection, void** context,
                                MHD_ConnectionNotificationCode code) {
    auto* self = static_cast<HttpServer*>(server);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      if (*context != nullptr) self->clients_.remove(static_cast<HttpClient*>(*context));
      return;
    }
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = self->clients_.add(info->connect_fd, self->limits_.head_time);
  }

  // With the first line of a request.
  static void* begin(void* server, const char* target, MHD_Connection* connection) {
    auto* self = static_cast<HttpServer*>(server);
    auto visit = std::make_unique<Visit>();
    visit->exchange = std::make_shared<HttpExchange>(connection);
    visit->exchange->request.target = target;
    // The text is a buffer. libmicrohttpd would read the query next and expand it beyond the
    // buffer, without an answer. The server reads the copy.
    if (const char* query = std::strchr(target, '?')) const_cast<char*>(query)[1] = '\0';
    const std::lock_guard lock(self->visits_mutex_);
    self->visits_.insert(visit.get());
    return visit.release();
  }

  static void complete(void* server, MHD_Connection* connection, void** request,
                       MHD_RequestTerminationCode /*code*/) {
    auto* self = static_cast<HttpServer*>(server);
    auto* visit = static_cast<Visit*>(*request);
    if (visit == nullptr) return;
    *request = nullptr;
    {
      const std::lock_guard lock(self->visits_mutex_);
      self->visits_.erase(visit);
    }
    self->visit_ended_.notify_one();
    if (visit->stream) visit->stream->set_gone();
    visit->exchange->answer({});
    delete visit;
    expect(self, connection, self->limits_.head_time, true);
  }

  static void read_head(HttpServer* self, MHD_Connection* connection, Visit& visit,
                        const char* method) {
    HttpRequest& request = visit.exchange->request;
    request.method = method;
    const auto* client = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (client != nullptr && client->client_addr != nullptr) {
      request.address = address_text(client->client_addr);
    }
    MHD_get_connection_values(connection, MHD_HEADER_KIND, read_header, &request);
    if (request.headers.contains("content-length") &&
        request.headers.contains("transfer-encoding")) {
      request.is_ambiguous = true;
    }
    const std::string& coding = request.header("transfer-encoding");
    request.is_coded = !coding.empty() && strcasecmp(coding.c_str(), "chunked") != 0;
    visit.has_head = true;
    expect(self, connection, self->limits_.body_time, true);
  }

  static void read_body(const HttpServer* self, Visit& visit, const char* body, std::size_t size) {
    HttpRequest& request = visit.exchange->request;
    if (request.body.size() + size > self->limits_.max_body_bytes) request.is_too_large = true;
    if (request.is_too_large) {
      request.body.clear();
    } else {
      request.body.append(body, size);
    }
  }

  static MHD_Result dispatch(HttpServer* self, MHD_Connection* connection, Visit& visit) {
    if (!visit.is_dispatched) {
      visit.is_dispatched = true;
      expect(self, connection, std::nullopt);
      if (self->is_ending()) {
        visit.exchange->answer({.status = MHD_HTTP_SERVICE_UNAVAILABLE});
      } else {
        self->handler_(visit.exchange);
      }
    }
    std::optional<HttpResponse> response = visit.exchange->answer_or_suspend();
    if (!response) return MHD_YES;
    if (visit.exchange->request.is_endless()) response->headers.emplace_back("Connection", "close");
    if (response->stream) {
      self->begin_stream(visit, connection, response->stream);
    } else {
      expect(self, connection, self->limits_.answer_time);
    }
    return queue(connection, *response);
  }

  // Called when a request's head is there, again for each part of the body, and at the end.
  static MHD_Result receive(void* server, MHD_Connection* connection, const char* /*path*/,
                            const char* method, const char* /*version*/, const char* body,
                            std::size_t* body_size, void** request) {
    auto* self = static_cast<HttpServer*>(server);
    auto* visit = static_cast<Visit*>(*request);
    if (visit == nullptr) return MHD_NO;
    try {
      if (!visit->has_head) {
        read_head(self, connection, *visit, method);
        if (!visit->exchange->request.is_endless()) return MHD_YES;
      }
      if (*body_size != 0 && !visit->is_dispatched) {
        read_body(self, *visit, body, *body_size);
        *body_size = 0;
        return MHD_YES;
      }
      return dispatch(self, connection, *visit);
    } catch (const std::exception&) {
      return MHD_NO;
    }
  }
};

HttpServer::HttpServer(HttpAddress address, HttpLimits limits, Handler handler)
    : address_(std::move(address)),
      limits_(limits),
      handler_(std::move(handler)),
      clients_(limits.max_connections) {}

bool HttpServer::is_ending() {
  const std::lock_guard lock(visits_mutex_);
  return is_ending_;
}

void HttpServer::begin_stream(Visit& visit, MHD_Connection* connection,
                              std::shared_ptr<HttpStream> stream) {
  stream->begin(connection);
  const std::lock_guard lock(visits_mutex_);
  if (is_ending_) stream->close();
  visit.stream = std::move(stream);
}

std::variant<std::unique_ptr<HttpServer>, std::string> HttpServer::start(const HttpAddress& address,
                                                                         HttpLimits limits,
                                                                         Handler handler,
                                                                         int* error) {
  const auto problem = [&](const char* what) {
    if (error != nullptr) *error = errno;
    return "cannot listen at " + address.text() + ": " + what;
  };
  UniqueFd listener = listen_at(address);
  if (!listener.valid()) return problem(std::strerror(errno));
  std::unique_ptr<HttpServer> server(new HttpServer(address, limits, std::move(handler)));
  server->address_.port = bound_port(listener.get());
  server->clients_.start();
  const SignalsBlocked blocked;
  errno = 0;
  server->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr,
      nullptr, HttpCallbacks::receive, server.get(),     //
      MHD_OPTION_EXTERNAL_LOGGER, say_nothing, nullptr,  //
      MHD_OPTION_LISTEN_SOCKET, listener.get(),          //
      // Beyond the connections that are served, while the oldest are being closed.
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(2 * limits.max_connections),
      MHD_OPTION_NOTIFY_CONNECTION, HttpCallbacks::notice_connection, server.get(),
      MHD_OPTION_NOTIFY_COMPLETED, HttpCallbacks::complete, server.get(),  //
      MHD_OPTION_URI_LOG_CALLBACK, HttpCallbacks::begin, server.get(), MHD_OPTION_UNESCAPE_CALLBACK,
      leave_encoded, nullptr,  //
      MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.max_head_bytes,
      MHD_OPTION_END);
  if (server->daemon_ == nullptr) return problem("its thread cannot be started");
  listener.release();  // the daemon closes the descriptor
  return server;
}

HttpServer::~HttpServer() {
  if (daemon_ == nullptr) return;
  {
    // The daemon may not end while a connection sleeps, and sends nothing more at the end.
    std::unique_lock lock(visits_mutex_);
    is_ending_ = true;
    for (Visit* visit : visits_) {
      visit->exchange->answer({.status = MHD_HTTP_SERVICE_UNAVAILABLE});
      if (visit->stream) visit->stream->close();
    }
    visit_ended_.wait_for(lock, kFarewell, [this] { return visits_.empty(); });
  }
  MHD_stop_daemon(daemon_);
}

}  // namespace pulse
