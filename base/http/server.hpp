// HTTP server: a server of HTTP/1.1 on a separate thread. It reads whole requests and gives each to
// a handler, which must not block: the answer may come later, from another thread. A client that
// asks slowly, or never to the end, holds only a connection, until its time is over or a newer
// client needs the connection.
//
// Invariants:
// - `visits_mutex_` guards `visits_` and `is_ending_`.
// - A visit is in `visits_` from the first line of a request until the request is over.
// - Only the server's thread changes the fields of a visit.
// - Only start() and the destructor use `daemon_`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <variant>

#include "base/http/address.hpp"
#include "base/http/clients.hpp"
#include "base/http/exchange.hpp"
#include "base/http/message.hpp"
#include "base/http/stream.hpp"

struct MHD_Connection;
struct MHD_Daemon;

namespace pulse {

struct HttpLimits {
  std::size_t max_connections = 32;
  std::size_t max_head_bytes = 8UL * 1024;
  std::size_t max_body_bytes = 0;  // a larger body is read and dropped
  std::chrono::milliseconds head_time = std::chrono::seconds(5);
  std::chrono::milliseconds body_time = std::chrono::seconds(10);
  std::chrono::milliseconds answer_time = std::chrono::seconds(30);
};

class HttpServer {
 public:
  // Called on the server's thread; answers at once or keeps the exchange for later.
  using Handler = std::function<void(const std::shared_ptr<HttpExchange>&)>;

  // Or why the server cannot listen there; `error` is the errno.
  static std::variant<std::unique_ptr<HttpServer>, std::string> start(const HttpAddress& address,
                                                                      HttpLimits limits,
                                                                      Handler handler,
                                                                      int* error = nullptr);
  // Answers all open requests, ends streams, sends the answers, for a second at most, and closes
  // every connection.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that the system gave, where any port was asked for.
  const HttpAddress& address() const { return address_; }
  std::size_t connections() const { return clients_.size(); }

  // The state of one connection; for the server's thread.
  struct Visit {
    std::shared_ptr<HttpExchange> exchange;
    std::shared_ptr<HttpStream> stream;
    bool is_dispatched = false;  // to the handler
    bool has_head = false;
  };

 private:
  friend struct HttpCallbacks;

  HttpServer(HttpAddress address, HttpLimits limits, Handler handler);

  bool is_ending();
  void begin_stream(Visit& visit, MHD_Connection* connection, std::shared_ptr<HttpStream> stream);

  HttpAddress address_;
  const HttpLimits limits_;
  const Handler handler_;
  HttpClients clients_;
  std::mutex visits_mutex_;
  std::set<Visit*> visits_;
  std::condition_variable visit_ended_;
  bool is_ending_ = false;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace pulse
