// Status: the pages of --http: /livez, /readyz and /metrics. The loop leaves its state here; a
// thread of the server makes the pages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/http/server.hpp"
#include "base/loop/timers.hpp"
#include "observe/health.hpp"
#include "observe/metrics.hpp"

namespace pulse {

class Status {
 public:
  // Or why the pages cannot be served. `names`: by which clients may call the server, besides
  // addresses and localhost. The clock and the log must outlive the status; the log must tell no
  // event once the status is gone. `error`: the errno of a failure.
  static std::variant<std::unique_ptr<Status>, std::string> start(const HttpAddress& address,
                                                                  std::vector<std::string> names,
                                                                  const Clock& clock, Log& log,
                                                                  int* error = nullptr);
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  // A database is served from now on; see Metrics. The name is empty where there is none.
  void begin_database(const std::string& name) { metrics_.begin_database(name); }
  // From the loop, at the end of each iteration.
  void publish(const WorkerState& state) { health_.publish(state, clock_.now()); }
  const HttpAddress& address() const { return server_->address(); }

 private:
  Status(std::vector<std::string> names, const Clock& clock);
  HttpResponse answer(const HttpRequest& request) const;

  const std::vector<std::string> names_;
  const Clock& clock_;
  Health health_;
  Metrics metrics_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace pulse
