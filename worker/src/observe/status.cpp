#include "observe/status.hpp"

#include "base/http/host.hpp"
#include "base/http/status.hpp"

namespace pulse {
namespace {

constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

HttpResponse probe_response(const std::string& reason) {
  if (reason.empty()) return {.body = "ok\n"};
  return {.status = http_status::kUnavailable, .body = reason + '\n'};
}

}  // namespace

Status::Status(std::vector<std::string> names, const Clock& clock)
    : names_(std::move(names)), clock_(clock), health_(clock.now()), metrics_(PULSE_VERSION) {}

std::variant<std::unique_ptr<Status>, std::string> Status::start(const HttpAddress& address,
                                                                 std::vector<std::string> names,
                                                                 const Clock& clock, Log& log,
                                                                 int* error) {
  std::unique_ptr<Status> status(new Status(std::move(names), clock));
  auto server = HttpServer::start(
      address, {},
      [&status = *status](const std::shared_ptr<HttpExchange>& exchange) {
        HttpResponse response = status.answer(exchange->request);
        response.headers.emplace_back("Cache-Control", "no-store");
        exchange->answer(std::move(response));
      },
      error);
  if (auto* problem = std::get_if<std::string>(&server)) return std::move(*problem);
  status->server_ = std::move(std::get<std::unique_ptr<HttpServer>>(server));
  log.listen([&metrics = status->metrics_](std::string_view event, Log::Fields fields) {
    metrics.take_event(event, fields);
  });
  log.info("serving", {{"http", status->address().text()}});
  return status;
}

// On the server's thread, one at a time.
HttpResponse Status::answer(const HttpRequest& request) const {
  // Every browser names a host; a check of HTTP/1.0 may name none.
  if (request.headers.contains("host") &&
      !is_name_of_server(name_in_host(request.header("host")), names_)) {
    return {.status = http_status::kMisdirectedRequest,
            .body =
                "this worker has another name: use its address, or start it with "
                "--http-name NAME\n"};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = http_status::kMethodNotAllowed, .body = "only GET and HEAD\n"};
  }
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/livez") return probe_response(why_not_alive(health_.read(), clock_.now()));
  if (path == "/readyz") return probe_response(why_not_ready(health_.read(), clock_.now()));
  if (path == "/metrics") {
    return {.body = metrics_.text(health_.read(), clock_.now()), .type = kPrometheusText};
  }
  return {.status = http_status::kNotFound,
          .body = "no such page; there are:\n/livez\n/metrics\n/readyz\n"};
}

}  // namespace pulse
