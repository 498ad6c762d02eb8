// pulse serve: the layer between the server of HTTP and the handlers.
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
  std::vector<std::string> names;  // by which clients may call the server
  Origin origin;                   // of the proxy in front of the server, where there is a proxy
  std::size_t sessions = 8;        // for requests answered at once
  std::size_t waits = 32;          // for claims that wait
};

class Service {
 public:
  // Returns the service, or a text that says why the service cannot listen there. The router and
  // the log outlive the service.
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
  void receive(const Exchange& exchange);
  void dispatch(const Route& route, Request request, const Exchange& exchange);
  // Returns the answer of the handler, or the meaning of the handler's refusal.
  Response handle(const Route& route, Request& request, LentSession& session);
  // A handler names paths of this server, and the client gets the paths with the prefix.
  void respond(const Request& request, const Exchange& exchange, Response response) const;
  void reject(const Request& request, const Exchange& exchange, const Problem& problem);
  // The server answers a guess late. Beyond kMaxLate waiting guesses, the server closes the
  // connection of a guess.
  void reject_late(const Request& request, const Exchange& exchange, Response response);
  void log_token_problem();
  void log_unreachable(const std::string& reason);

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
