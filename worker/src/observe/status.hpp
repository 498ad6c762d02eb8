// What --http serves: /livez, /readyz and /metrics. The loop leaves its state here; a
// thread of the server's own makes the pages of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "loop/timers.hpp"
#include "observe/health.hpp"
#include "observe/http_server.hpp"
#include "observe/metrics.hpp"

namespace pulse {

class Status {
 public:
  // Or why it cannot be served. The clock and the log must outlive it, the log without a word.
  static std::variant<std::unique_ptr<Status>, std::string> start(const HttpAddress& address,
                                                                  const Clock& clock, Log& log);
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  // From the loop, at the end of each turn.
  void publish(const WorkerState& state) { health_.publish(state, clock_.now()); }
  const HttpAddress& address() const { return server_->address(); }
  const HttpServer& server() const { return *server_; }

 private:
  explicit Status(const Clock& clock);
  HttpServer::Pages pages();

  const Clock& clock_;
  Health health_;
  Metrics metrics_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace pulse
