// A server of HTTP/1.1 on a thread of its own. It reads whole requests and gives each to a handler,
// which must not block: the answer may come later, from another thread. A client that asks slowly,
// or never to the end, holds one of the connections until its time is over or a newer client needs
// it, and nothing else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <variant>

#include "http/http_address.hpp"
#include "http/http_clients.hpp"
#include "http/http_exchange.hpp"
#include "http/http_message.hpp"
#include "http/http_stream.hpp"

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

  // Or why it cannot listen there.
  static std::variant<std::unique_ptr<HttpServer>, std::string> start(const HttpAddress& address,
                                                                      HttpLimits limits,
                                                                      Handler handler);
  // Answers what is unanswered, ends streams, sends it all, for a second at most, and closes every
  // connection.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that was given, where any was asked for.
  const HttpAddress& address() const { return address_; }
  std::size_t connections() const { return clients_.size(); }

  // What one connection is at; for the server's thread.
  struct Visit {
    std::shared_ptr<HttpExchange> exchange;
    std::shared_ptr<HttpStream> stream;
    bool is_given = false;  // to the handler
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
