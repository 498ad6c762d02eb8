// pulse serve: the layer between the server of HTTP and the handlers.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "admission/gate.hpp"
#include "base/http/server.hpp"
#include "base/log/log.hpp"
#include "serve/origin.hpp"
#include "service/late_answers.hpp"
#include "service/live.hpp"
#include "service/site.hpp"

namespace pulse::console {

struct ServiceOptions {
  HttpAddress address;
  std::vector<std::string> names;  // by which clients may call the server
  Origin origin;                   // of the proxy in front of the server, where there is a proxy
};

class Service {
 public:
  // One site for a server of one database. A server of several has a site of each node, and the
  // site about all nodes, which has the name "". The service stops the threads of the sites.
  using Sites = std::vector<Site*>;

  // Returns the service, or a text that says why the service cannot listen there. The sites and the
  // log outlive the service.
  static std::variant<std::unique_ptr<Service>, std::string> start(ServiceOptions options,
                                                                   Tokens tokens, Sites sites,
                                                                   Log& log);
  ~Service() { stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Answers the requests that have begun, and ends the server of HTTP. Returns whether all threads
  // of the sites have ended: a database that hangs holds its threads. Where some have not, the
  // process must end without destroying the service and the sites.
  bool stop();

  const HttpAddress& address() const { return server_->address(); }

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  Service(ServiceOptions options, Tokens tokens, Sites sites, Log& log);
  // The site of a path, and the path as the routes of the site spell it. A path of no node is of
  // the site "".
  struct Place {
    Site* site;
    std::string_view path;
  };
  Place place_of(std::string_view path) const;
  // Takes the prefix and the path of the node from the target of the request.
  Site& enter(HttpRequest& request) const;
  void receive(const Exchange& exchange);
  void receive(Site& site, Request& request, const Exchange& exchange);
  void dispatch(Site& site, const Route& route, Request request, const Exchange& exchange);
  // Returns the answer of the handler, or the meaning of its refusal.
  Response handle(Site& site, const Route& route, Request& request, LentSession& session);
  // A handler names paths of the site, and the client gets them with the prefix and the path of the
  // node.
  void respond(const Request& request, const Exchange& exchange, Response response) const;
  void reject(const Site& site, const Request& request, const Exchange& exchange,
              const Problem& problem);
  // The server answers a guess late. Beyond kMaxLate waiting guesses, the server closes the
  // connection of a guess.
  void reject_late(const Site& site, const Request& request, const Exchange& exchange,
                   Response response);
  void log_token_problem();

  const ServiceOptions options_;
  const Sites sites_;
  Log& log_;
  std::atomic<bool> is_ending_ = false;
  Gate gate_;
  std::unique_ptr<Live> live_;
  LateAnswers late_{std::chrono::seconds(1)};
  std::unique_ptr<HttpServer> server_;
};

}  // namespace pulse::console
