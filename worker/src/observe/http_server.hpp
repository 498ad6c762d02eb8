// Serves a few pages over HTTP, on a thread of its own. A client that asks slowly, or never to the
// end, holds one of a few connections for a while, and nothing of the worker.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "observe/http_address.hpp"

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

 private:
  HttpServer(HttpAddress address, Pages pages)
      : address_(std::move(address)), pages_(std::move(pages)) {}

  HttpAddress address_;
  const Pages pages_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace pulse
