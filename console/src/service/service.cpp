#include "service/service.hpp"

#include "base/http/status.hpp"
#include "base/postgres/connection_options.hpp"
#include "service/audit.hpp"
#include "service/prefix.hpp"
#include "service/read_request.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxConnections = 1'000;
constexpr std::size_t kMaxHeadBytes = 32UL * 1024;
constexpr std::size_t kMaxBodyBytes = 1024UL * 1024;
constexpr std::size_t kMaxWaiting = 256;

// Scripts and styles are files of this server; nothing is in a page, or from elsewhere.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

void add_default(Response& response, const char* name, const char* value) {
  for (const auto& [present, _] : response.headers) {
    if (present == name) return;
  }
  response.headers.emplace_back(name, value);
}

void add_defaults(Response& response) {
  if (response.status == http_status::kUnavailable ||
      response.status == http_status::kTooManyRequests) {
    add_default(response, "Retry-After", "1");
  }
  add_default(response, "Cache-Control", "no-store");
  add_default(response, "Content-Security-Policy", kPolicy);
  add_default(response, "X-Content-Type-Options", "nosniff");
  add_default(response, "X-Frame-Options", "DENY");
  add_default(response, "Referrer-Policy", "same-origin");
  add_default(response, "Cross-Origin-Resource-Policy", "same-origin");
}

HttpLimits limits() {
  HttpLimits limits;
  limits.max_connections = kMaxConnections;
  limits.max_head_bytes = kMaxHeadBytes;
  limits.max_body_bytes = kMaxBodyBytes;
  return limits;
}

}  // namespace

Service::Service(ServiceOptions options, Tokens tokens, const Database& database,
                 const Router& router, Log& log)
    : options_(std::move(options)),
      router_(router),
      log_(log),
      gate_(std::move(tokens), options_.names, options_.origin) {
  // No statement of a page takes long; a claim may wait, and is asked for a few seconds at a time.
  quick_ = std::make_unique<ThreadPool>(options_.sessions, kMaxWaiting,
                                        [&] { return LentSession(database.another(), "20s"); });
  waiting_ = std::make_unique<ThreadPool>(options_.waits, 0,
                                          [&] { return LentSession(database.another(), "20s"); });
  live_ = std::make_unique<Live>(
      *quick_, [this](const Access& access) { return gate_.still_admits(access); },
      [this](const std::string& reason) { log_unreachable(reason); });
}

std::variant<std::unique_ptr<Service>, std::string> Service::start(ServiceOptions options,
                                                                   Tokens tokens,
                                                                   const Database& database,
                                                                   const Router& router, Log& log) {
  std::unique_ptr<Service> service(
      new Service(std::move(options), std::move(tokens), database, router, log));
  auto server =
      HttpServer::start(service->options_.address, limits(),
                        [self = service.get()](const std::shared_ptr<HttpExchange>& exchange) {
                          self->receive(exchange);
                        });
  if (auto* problem = std::get_if<std::string>(&server)) return std::move(*problem);
  service->server_ = std::move(std::get<std::unique_ptr<HttpServer>>(server));
  return service;
}

// Requests that have begun get an answer, above all a claim that has taken jobs. The server answers
// the rest; only then may the server's handlers go.
Service::~Service() {
  is_ending_ = true;
  waiting_->stop();
  live_->stop();
  quick_->stop();
  late_.stop();
  server_.reset();
}

// On the server's thread, which waits for nothing here.
void Service::receive(const Exchange& exchange) {
  exchange->request.target = target_within(options_.origin.prefix, router_, exchange->request);
  // Without a proxy each client could write any address into the header.
  if (!options_.origin.is_given()) exchange->request.headers.erase("x-forwarded-for");
  // A request that cannot be read is refused in the way of the request's path.
  Request request;
  request.method = exchange->request.method;
  request.path = exchange->request.target.substr(0, exchange->request.target.find('?'));
  request.http.address = exchange->request.address;
  try {
    request = read_request(std::move(exchange->request));
    if (is_ending_) refuse(http_status::kUnavailable, "this server is ending");
    gate_.check_host(request);
    if (request.path == "/login" && request.method == "POST") {
      return respond(request, exchange, gate_.sign_in(request));
    }
    Router::Found found = router_.find(request.method, request.path);
    request.parameters = std::move(found.parameters);
    request.access = gate_.admit(request, found.route ? found.route->need : Need::nothing);
    log_token_problem();
    if (request.path == "/logout" && request.method == "POST") {
      return respond(request, exchange, gate_.sign_out(request));
    }
    if (found.route != nullptr) return dispatch(*found.route, std::move(request), exchange);
    const unsigned status =
        found.is_known ? http_status::kMethodNotAllowed : http_status::kNotFound;
    Response response = router_.error(
        request, {status, title_of(status),
                  found.is_known ? "only " + found.allowed : "there is no such page"});
    if (found.is_known) response.headers.emplace_back("Allow", found.allowed);
    respond(request, exchange, std::move(response));
  } catch (const Failed& failed) {
    reject(request, exchange, failed.problem);
  }
}

void Service::reject(const Request& request, const Exchange& exchange, const Problem& problem) {
  log_token_problem();
  Response response = router_.error(request, problem);
  if (problem.status == http_status::kUnauthorized) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"pg_pulse\"");
  }
  if (problem.is_guess) return reject_late(request, exchange, std::move(response));
  respond(request, exchange, std::move(response));
}

void Service::reject_late(const Request& request, const Exchange& exchange, Response response) {
  add_defaults(response);
  write_audit(log_, request, response.status);
  if (late_.add([exchange, response] { exchange->answer(response); })) return;
  Response hasty = router_.error(
      request, {http_status::kTooManyRequests, title_of(http_status::kTooManyRequests),
                "too many clients show tokens that are not known"});
  hasty.headers.emplace_back("Connection", "close");
  add_defaults(hasty);
  exchange->answer(std::move(hasty));
}

// A handler that needs no session is called at once.
void Service::dispatch(const Route& route, Request request, const Exchange& exchange) {
  if (route.producer) {
    // A proxy that gathers or packs the response would hold events back.
    Response response{
        .type = "text/event-stream",
        .headers = {{"Cache-Control", "no-store, no-transform"}, {"X-Accel-Buffering", "no"}}};
    if (request.method != "HEAD") response.stream = live_->listen(route, request);
    return respond(request, exchange, std::move(response));
  }
  if (route.need == Need::nothing) return respond(request, exchange, route.handler(request));
  request.is_client_gone = [this, exchange, access = request.access] {
    return is_ending_ || exchange->is_client_gone() || !gate_.still_admits(access);
  };
  const auto work = [&](const Request& given) -> ThreadPool::Work {
    return [this, &route, given, exchange](LentSession& session) {
      Request lent = given;
      Response response = handle(route, lent, session);
      respond(lent, exchange, std::move(response));
    };
  };
  if (route.pool == Pool::waiting && waiting_->add(work(request))) return;
  request.may_wait = false;
  if (quick_->add(work(request))) return;
  reject(request, exchange,
         {http_status::kUnavailable, title_of(http_status::kUnavailable), "too many requests wait",
          "", "Try again."});
}

Response Service::handle(const Route& route, Request& request, LentSession& session) {
  try {
    request.session = &session.lend(request.access, request.is_change());
    return route.handler(request);
  } catch (const Refused& refused) {
    return router_.error(request, problem_of(refused.error));
  } catch (const Unreachable& unreachable) {
    log_unreachable(unreachable.what());
    return router_.error(request, unreachable_problem());
  } catch (const Failed& failed) {
    return router_.error(request, failed.problem);
  } catch (const std::exception& error) {
    log_.error("fault", {{"path", request.path}, {"reason", std::string(error.what())}});
    return router_.error(request,
                         {http_status::kInternalError, title_of(http_status::kInternalError),
                          "this server has a fault", "", ""});
  }
}

void Service::respond(const Request& request, const Exchange& exchange, Response response) const {
  add_defaults(response);
  for (auto& [name, value] : response.headers) {
    if (name == "Location") value.insert(0, options_.origin.prefix);
  }
  write_audit(log_, request, response.status);
  exchange->answer(std::move(response));
}

void Service::log_token_problem() {
  if (const auto problem = gate_.tokens().new_problem()) {
    log_.error("tokens_refused", {{"reason", *problem}});
  }
}

void Service::log_unreachable(const std::string& reason) {
  const std::lock_guard lock(unreachable_mutex_);
  log_.write(unreachable_.level_of(reason, BootClock::now()), "database_unreachable",
             {{"reason", reason}, {"hint", kHowToConnect}});
}

}  // namespace pulse::console
