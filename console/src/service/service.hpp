// pulse serve: what comes between the server of HTTP and the handlers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "admission/gate.hpp"
#include "base/http/server.hpp"
#include "base/log/log.hpp"
#include "base/postgres/repeats.hpp"
#include "serve/origin.hpp"
#include "serve/router.hpp"
#include "service/late_answers.hpp"
#include "service/live.hpp"
#include "service/thread_pool.hpp"

namespace pulse::console {

struct ServiceOptions {
  HttpAddress address;
  std::vector<std::string> names;  // that clients may call it by
  Origin origin;                   // of the proxy in front of it, where there is one
  std::size_t sessions = 8;        // for what is answered at once
  std::size_t waits = 32;          // for claims that wait
};

class Service {
 public:
  // Or why it cannot listen there. The router and the log outlive it.
  static std::variant<std::unique_ptr<Service>, std::string> start(ServiceOptions options,
                                                                   Tokens tokens,
                                                                   const Database& database,
                                                                   const Router& router, Log& log);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const HttpAddress& address() const { return server_->address(); }

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  Service(ServiceOptions options, Tokens tokens, const Database& database, const Router& router,
          Log& log);
  void take(const Exchange& exchange);
  void give(const Route& route, Request request, const Exchange& exchange);
  // The answer of the handler, or what its refusal means.
  Response run(const Route& route, Request& request, LentSession& session);
  // A handler names paths of this server, and the client gets them with the prefix.
  void end(const Request& request, const Exchange& exchange, Response response) const;
  void end_early(const Request& request, const Exchange& exchange, const Problem& problem);
  // A guess is answered late. Beyond those that wait, guesses are hung up on.
  void end_late(const Request& request, const Exchange& exchange, Response response);
  void tell_token_problem();
  void tell_unreachable(const std::string& reason);

  const ServiceOptions options_;
  const Router& router_;
  Log& log_;
  std::atomic<bool> is_ending_ = false;
  Gate gate_;
  std::mutex unreachable_mutex_;
  Repeats unreachable_;  // guarded by unreachable_mutex_
  std::unique_ptr<ThreadPool> quick_;
  std::unique_ptr<ThreadPool> waiting_;
  std::unique_ptr<Live> live_;
  LateAnswers late_{std::chrono::seconds(1)};
  std::unique_ptr<HttpServer> server_;
};

}  // namespace pulse::console
