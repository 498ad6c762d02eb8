// Serves a few pages over HTTP, on a thread of its own. A client that asks slowly, or never to the
// end, holds one of a few connections until a newer client needs it, and nothing of the worker.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "observe/http_address.hpp"

struct MHD_Connection;
struct MHD_Daemon;

namespace pulse {

struct HttpPage {
  unsigned status = 200;
  std::string body;
  std::string type = "text/plain; charset=utf-8";
};

class HttpServer {
 public:
  // Makes the page for a path; called on the server's thread, one at a time.
  using Pages = std::map<std::string, std::function<HttpPage()>, std::less<>>;

  // Or why it cannot listen there.
  static std::variant<std::unique_ptr<HttpServer>, std::string> start(const HttpAddress& address,
                                                                      Pages pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that was given, where any was asked for.
  const HttpAddress& address() const { return address_; }
  // For a request of this method and path.
  HttpPage answer(std::string_view method, std::string_view path) const;

  // On the server's thread. A client that is one too many takes the place of the oldest, which is
  // returned to be hung up on.
  MHD_Connection* add_client(MHD_Connection* connection);
  void forget_client(MHD_Connection* connection);

 private:
  HttpServer(HttpAddress address, Pages pages)
      : address_(std::move(address)), pages_(std::move(pages)) {}

  HttpAddress address_;
  const Pages pages_;
  std::deque<MHD_Connection*> clients_;  // the oldest first
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace pulse
