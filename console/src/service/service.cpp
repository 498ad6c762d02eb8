#include "service/service.hpp"

#include "base/http/status.hpp"
#include "html/url.hpp"
#include "service/audit.hpp"
#include "service/prefix.hpp"
#include "service/read_request.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxConnections = 1'000;
constexpr std::size_t kMaxHeadBytes = 32UL * 1024;
constexpr std::size_t kMaxBodyBytes = 1024UL * 1024;

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

Service::Service(ServiceOptions options, Tokens tokens, Sites sites, Log& log)
    : options_(std::move(options)),
      sites_(std::move(sites)),
      log_(log),
      gate_(std::move(tokens), options_.names, options_.origin) {
  live_ =
      std::make_unique<Live>([this](const Access& access) { return gate_.still_admits(access); });
}

std::variant<std::unique_ptr<Service>, std::string> Service::start(ServiceOptions options,
                                                                   Tokens tokens, Sites sites,
                                                                   Log& log) {
  std::unique_ptr<Service> service(
      new Service(std::move(options), std::move(tokens), std::move(sites), log));
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
// the rest; only then may its handlers go.
bool Service::stop() {
  is_ending_ = true;
  const auto since = std::chrono::steady_clock::now();
  bool have_all_ended = true;
  for (Site* site : sites_) have_all_ended &= site->waiting().stop(since);
  live_->stop();
  for (Site* site : sites_) have_all_ended &= site->quick().stop(since);
  late_.stop();
  server_.reset();
  return have_all_ended;
}

Service::Place Service::place_of(std::string_view path) const {
  Place place{nullptr, path};
  for (Site* site : sites_) {
    const std::string start = path_of_node(site->node());
    if (start.empty()) {
      place.site = site;
      continue;
    }
    if (!path.starts_with(start)) continue;
    const std::string_view rest = path.substr(start.size());
    if (rest.empty()) return {site, "/"};
    if (rest.front() == '/') return {site, rest};
  }
  return place;
}

Site& Service::enter(HttpRequest& request) const {
  const auto is_known = [this](std::string_view path) {
    const Place place = place_of(path);
    return place.site->router.find("GET", place.path).is_known;
  };
  const std::string target = target_within(options_.origin.prefix, is_known, request);
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  const Place place = place_of(path);
  request.target = std::string(place.path) + target.substr(path.size());
  return *place.site;
}

// On the server's thread, which waits for nothing here.
void Service::receive(const Exchange& exchange) {
  Site& site = enter(exchange->request);
  const AddressesOfNode addresses(site.node());
  // Without a proxy each client could write any address into the header.
  if (!options_.origin.is_given()) exchange->request.headers.erase("x-forwarded-for");
  // A request that cannot be read is refused in the way of its path.
  Request request;
  request.node = site.node();
  request.method = exchange->request.method;
  request.path = exchange->request.target.substr(0, exchange->request.target.find('?'));
  request.http.address = exchange->request.address;
  try {
    receive(site, request, exchange);
  } catch (const Failed& failed) {
    reject(site, request, exchange, failed.problem);
  }
}

void Service::receive(Site& site, Request& request, const Exchange& exchange) {
  request = read_request(std::move(exchange->request));
  request.node = site.node();
  if (is_ending_) refuse(http_status::kUnavailable, "this server is ending");
  gate_.check_host(request);
  if (request.path == "/login" && request.method == "POST") {
    return respond(request, exchange, gate_.sign_in(request));
  }
  Router::Found found = site.router.find(request.method, request.path);
  request.parameters = std::move(found.parameters);
  request.access = gate_.admit(request, found.route ? found.route->need : Need::nothing);
  log_token_problem();
  if (request.path == "/logout" && request.method == "POST") {
    return respond(request, exchange, gate_.sign_out(request));
  }
  if (found.route != nullptr) return dispatch(site, *found.route, std::move(request), exchange);
  const unsigned status = found.is_known ? http_status::kMethodNotAllowed : http_status::kNotFound;
  Response response = site.router.error(
      request, {status, title_of(status),
                found.is_known ? "only " + found.allowed : "there is no such page"});
  if (found.is_known) response.headers.emplace_back("Allow", found.allowed);
  respond(request, exchange, std::move(response));
}

void Service::reject(const Site& site, const Request& request, const Exchange& exchange,
                     const Problem& problem) {
  log_token_problem();
  Response response = site.router.error(request, problem);
  if (problem.status == http_status::kUnauthorized) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"pg_pulse\"");
  }
  if (problem.is_guess) return reject_late(site, request, exchange, std::move(response));
  respond(request, exchange, std::move(response));
}

void Service::reject_late(const Site& site, const Request& request, const Exchange& exchange,
                          Response response) {
  add_defaults(response);
  write_audit(log_, request, response.status);
  if (late_.add([exchange, response] { exchange->answer(response); })) return;
  Response hasty = site.router.error(
      request, {http_status::kTooManyRequests, title_of(http_status::kTooManyRequests),
                "too many clients show tokens that are not known"});
  hasty.headers.emplace_back("Connection", "close");
  add_defaults(hasty);
  exchange->answer(std::move(hasty));
}

// A handler that needs no session is called at once.
void Service::dispatch(Site& site, const Route& route, Request request, const Exchange& exchange) {
  if (route.producer) {
    // A proxy that gathers or packs the response would hold events back.
    Response response{
        .type = "text/event-stream",
        .headers = {{"Cache-Control", "no-store, no-transform"}, {"X-Accel-Buffering", "no"}}};
    if (request.method != "HEAD") response.stream = live_->listen(site, route, request);
    return respond(request, exchange, std::move(response));
  }
  if (route.need == Need::nothing) return respond(request, exchange, route.handler(request));
  request.is_client_gone = [this, exchange, access = request.access] {
    return is_ending_ || exchange->is_client_gone() || !gate_.still_admits(access);
  };
  const auto work = [&](const Request& given) -> ThreadPool::Work {
    return [this, &site, &route, given, exchange](LentSession& session) {
      Request lent = given;
      Response response = handle(site, route, lent, session);
      respond(lent, exchange, std::move(response));
    };
  };
  if (route.pool == Pool::waiting && site.waiting().add(work(request))) return;
  request.may_wait = false;
  if (site.quick().add(work(request))) return;
  reject(site, request, exchange,
         {http_status::kUnavailable, title_of(http_status::kUnavailable), "too many requests wait",
          "", "Try again."});
}

Response Service::handle(Site& site, const Route& route, Request& request, LentSession& session) {
  const AddressesOfNode addresses(request.node);
  try {
    request.session = session.lend(request.access, request.is_change());
    return route.handler(request);
  } catch (const Refused& refused) {
    return site.router.error(request, problem_of(refused.error));
  } catch (const Unreachable& unreachable) {
    site.log_unreachable(unreachable.what());
    return site.router.error(request, unreachable_problem());
  } catch (const Failed& failed) {
    return site.router.error(request, failed.problem);
  } catch (const std::exception& error) {
    log_.error("fault", {{"database", name_in_log(request.node)},
                         {"path", request.path},
                         {"reason", std::string(error.what())}});
    return site.router.error(request,
                             {http_status::kInternalError, title_of(http_status::kInternalError),
                              "this server has a fault", "", ""});
  }
}

void Service::respond(const Request& request, const Exchange& exchange, Response response) const {
  add_defaults(response);
  for (auto& [name, value] : response.headers) {
    if (name == "Location") value.insert(0, options_.origin.prefix + path_of_node(request.node));
  }
  write_audit(log_, request, response.status);
  exchange->answer(std::move(response));
}

void Service::log_token_problem() {
  if (const auto problem = gate_.tokens().new_problem()) {
    log_.error("tokens_refused", {{"reason", *problem}});
  }
}

}  // namespace pulse::console
