#include "observe/http_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>

#include "loop/signals_blocked.hpp"
#include "loop/unique_fd.hpp"

namespace pulse {
namespace {

constexpr int kBacklog = 16;
constexpr std::size_t kMaxConnections = 32;
// Beyond them, while the oldest are being closed.
constexpr unsigned kConnectionLimit = 2 * kMaxConnections;
// After so long without a byte a connection is closed.
constexpr unsigned kIdleSeconds = 5;
// For what a request says; more of it is refused.
constexpr std::size_t kRequestBytes = 8 * 1024;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress socket_address(const HttpAddress& address) {
  SocketAddress made;
  if (address.is_ipv6()) {
    auto* inet6 = reinterpret_cast<sockaddr_in6*>(&made.storage);
    inet6->sin6_family = AF_INET6;
    inet6->sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &inet6->sin6_addr);
    made.length = sizeof *inet6;
  } else {
    auto* inet = reinterpret_cast<sockaddr_in*>(&made.storage);
    inet->sin_family = AF_INET;
    inet->sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &inet->sin_addr);
    made.length = sizeof *inet;
  }
  return made;
}

std::uint16_t bound_port(int descriptor) {
  SocketAddress bound;
  if (getsockname(descriptor, bound.get(), &bound.length) != 0) return 0;
  const bool is_ipv6 = bound.storage.ss_family == AF_INET6;
  return ntohs(is_ipv6 ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                       : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
}

// A listening socket; invalid, with errno set, if there can be none.
UniqueFd listen_at(const HttpAddress& address) {
  SocketAddress wanted = socket_address(address);
  UniqueFd listener(
      socket(wanted.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return listener;
  // A port whose last server has just ended is free.
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener.get(), wanted.get(), wanted.length) == 0 &&
      listen(listener.get(), kBacklog) == 0) {
    return listener;
  }
  const int error = errno;
  listener.reset();
  errno = error;
  return listener;
}

// libmicrohttpd complains of each broken request; that is the client's affair.
void say_nothing(void* /*server*/, const char* /*format*/, va_list /*values*/) {}

MHD_Result respond(MHD_Connection* connection, const HttpPage& page) {
  // It takes no pointer to what it may only read, though it copies it.
  MHD_Response* const response = MHD_create_response_from_buffer(
      page.body.size(), const_cast<char*>(page.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type.c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  const MHD_Result result = MHD_queue_response(connection, page.status, response);
  MHD_destroy_response(response);
  return result;
}

// Called when a request's head is there, and again for each part of its body, which is not read.
MHD_Result take_request(void* server, MHD_Connection* connection, const char* path,
                        const char* method, const char* /*version*/, const char* /*body*/,
                        std::size_t* body_size, void** request) {
  if (*request == nullptr) {
    *request = server;
    return MHD_YES;
  }
  if (*body_size != 0) {
    *body_size = 0;
    return MHD_YES;
  }
  try {
    return respond(connection, static_cast<const HttpServer*>(server)->answer(method, path));
  } catch (const std::exception&) {
    return MHD_NO;  // out of memory: the connection is closed, and C code is not unwound
  }
}

// Called on the server's thread.
void take_connection(void* server, MHD_Connection* connection, void** /*context*/,
                     MHD_ConnectionNotificationCode code) {
  auto* self = static_cast<HttpServer*>(server);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    self->forget_client(connection);
  } else if (MHD_Connection* oldest = self->add_client(connection)) {
    const auto* info = MHD_get_connection_info(oldest, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) shutdown(info->connect_fd, SHUT_RDWR);
  }
}

}  // namespace

std::variant<std::unique_ptr<HttpServer>, std::string> HttpServer::start(const HttpAddress& address,
                                                                         Pages pages) {
  const auto problem = [&](const char* what) {
    return "cannot listen at " + address.text() + ": " + what;
  };
  UniqueFd listener = listen_at(address);
  if (!listener.valid()) return problem(std::strerror(errno));
  std::unique_ptr<HttpServer> server(new HttpServer(address, std::move(pages)));
  server->address_.port = bound_port(listener.get());
  const SignalsBlocked blocked;
  server->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, nullptr, nullptr, take_request,
      server.get(), MHD_OPTION_EXTERNAL_LOGGER, say_nothing, nullptr, MHD_OPTION_LISTEN_SOCKET,
      listener.get(), MHD_OPTION_CONNECTION_LIMIT, kConnectionLimit, MHD_OPTION_CONNECTION_TIMEOUT,
      kIdleSeconds, MHD_OPTION_NOTIFY_CONNECTION, take_connection, server.get(),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytes, MHD_OPTION_END);
  if (server->daemon_ == nullptr) return problem("its thread cannot be started");
  listener.release();  // the daemon closes it
  return server;
}

MHD_Connection* HttpServer::add_client(MHD_Connection* connection) {
  clients_.push_back(connection);
  if (clients_.size() <= kMaxConnections) return nullptr;
  MHD_Connection* oldest = clients_.front();
  clients_.pop_front();
  return oldest;
}

void HttpServer::forget_client(MHD_Connection* connection) { std::erase(clients_, connection); }

HttpServer::~HttpServer() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

HttpPage HttpServer::answer(std::string_view method, std::string_view path) const {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return {MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n"};
  }
  const auto page = pages_.find(path);
  if (page != pages_.end()) return page->second();
  std::string list = "no such page; there are:\n";
  for (const auto& [name, make] : pages_) list += name + '\n';
  return {MHD_HTTP_NOT_FOUND, std::move(list)};
}

}  // namespace pulse
