#include "observe/status.hpp"

namespace pulse {
namespace {

constexpr unsigned kUnavailable = 503;
constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

HttpPage verdict(const std::string& reason) {
  if (reason.empty()) return {.body = "ok\n"};
  return {.status = kUnavailable, .body = reason + '\n'};
}

}  // namespace

Status::Status(const Clock& clock) : clock_(clock), health_(clock.now()), metrics_(PULSE_VERSION) {}

std::variant<std::unique_ptr<Status>, std::string> Status::start(const HttpAddress& address,
                                                                 const Clock& clock, Log& log) {
  std::unique_ptr<Status> status(new Status(clock));
  auto server = HttpServer::start(address, status->pages());
  if (auto* problem = std::get_if<std::string>(&server)) return std::move(*problem);
  status->server_ = std::move(std::get<std::unique_ptr<HttpServer>>(server));
  log.listen([&metrics = status->metrics_](std::string_view event, Log::Fields fields) {
    metrics.take_event(event, fields);
  });
  log.info("serving", {{"http", status->address().text()}});
  return status;
}

HttpServer::Pages Status::pages() {
  return {
      {"/livez", [this] { return verdict(why_not_alive(health_.read(), clock_.now())); }},
      {"/readyz", [this] { return verdict(why_not_ready(health_.read(), clock_.now())); }},
      {"/metrics",
       [this]() -> HttpPage {
         return {.body = metrics_.text(health_.read(), clock_.now()), .type = kPrometheusText};
       }},
  };
}

}  // namespace pulse
