// pulse serve: pages for a browser, and the HTTP API, until a signal ends the server.
#include <pthread.h>

#include <csignal>
#include <cstdio>

#include "api/api.hpp"
#include "base/loop/signals_blocked.hpp"
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "database/interrupt.hpp"
#include "html/url.hpp"
#include "pages/frame.hpp"
#include "pages/pages.hpp"
#include "service/service.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

constexpr const char* kDefaultListen = "127.0.0.1:8440";

struct Serve {
  std::string listen = kDefaultListen;
  std::string tokens;
  std::string origin;
  ServiceOptions service;
  Appearance appearance;
  bool is_json = false;
};

bool is_loopback(const HttpAddress& address) {
  return address.host.starts_with("127.") || address.host == "::1";
}

// The signals by which a script, a supervisor or a person asks a server to end.
void wait_to_end() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  int number = 0;
  while (sigwait(&ends, &number) != 0) {
  }
}

ExitStatus complain(const std::string& problem) {
  std::fprintf(stderr, "pulse: %s\n", problem.c_str());
  return ExitStatus::usage;
}

void add_health(Router& router) {
  router.add("GET", "/healthz", Need::nothing,
             [](const Request& /*request*/) { return Response{.body = "ok\n"}; });
}

ExitStatus serve(Console& console, Serve serve) {
  serve.service.address = std::get<HttpAddress>(parse_http_address(serve.listen));
  if (!serve.origin.empty()) {
    serve.service.origin = std::get<Origin>(parse_origin(serve.origin));
  }
  if (serve.tokens.empty() && !is_loopback(serve.service.address)) {
    return complain("--listen " + serve.listen +
                    " can be reached from elsewhere; give --tokens FILE, too");
  }
  auto tokens = Tokens::read(serve.tokens);
  if (const auto* problem = std::get_if<std::string>(&tokens)) {
    return complain("--tokens: " + *problem);
  }
  leave_interrupts();
  const SignalsBlocked blocked;
  Log log(console.options.is_json ? LogFormat::json : LogFormat::text, LogLevel::info, 2);
  set_url_prefix(serve.service.origin.prefix);
  Router router;
  add_health(router);
  add_api(router, serve.service.origin.address());
  set_appearance(serve.appearance);
  add_pages(router);
  auto started = Service::start(serve.service, std::move(std::get<Tokens>(tokens)),
                                console.database, router, log);
  if (const auto* problem = std::get_if<std::string>(&started)) return complain(*problem);
  auto& service = std::get<std::unique_ptr<Service>>(started);
  log.info("serving", {{"http", service->address().text()}});
  wait_to_end();
  log.info("ending");
  service.reset();
  log.close();
  return ExitStatus::done;
}

// A longer one has no place beside the name of the program.
CLI::Validator is_short_title() {
  return {[](const std::string& text) {
            constexpr std::size_t kMaxColumns = 24;
            return width(text) <= kMaxColumns ? std::string()
                                              : "'" + text + "' is longer than 24 characters";
          },
          "TEXT"};
}

// Accepts the texts that `parse` takes; `parse` returns a value, or a text that names the fault.
template <typename Parse>
CLI::Validator is_taken_by(Parse parse, const char* shape) {
  return {[parse](const std::string& text) {
            const auto parsed = parse(text);
            const auto* problem = std::get_if<std::string>(&parsed);
            return problem == nullptr ? std::string() : *problem;
          },
          shape};
}

}  // namespace

void add_serve(CommandLine& line) {
  auto given = std::make_shared<Serve>();
  CLI::App& command = line.add("serve", "Pages for a browser, and the HTTP API",
                               [given](Console& console) { return serve(console, *given); });
  command.add_option("--listen", given->listen, "Where; another than the loopback needs --tokens")
      ->check(is_taken_by(parse_http_address, "ADDRESS:PORT"))
      ->capture_default_str();
  command.add_option("--tokens", given->tokens,
                     "File of tokens, as \"pulse token\" prints them; without one nothing changes");
  command.add_option("--host", given->service.names,
                     "A name by which clients call this server, beside its address and localhost");
  command
      .add_option("--origin", given->origin,
                  "The address that browsers use, where a proxy stands in front of this server: "
                  "https://ops.example.com/queue")
      ->check(is_taken_by(parse_origin, "URL"));
  command
      .add_option("--title", given->appearance.title,
                  "What the pages call this system, such as production")
      ->check(is_short_title());
  command
      .add_option("--colour,--color", given->appearance.colour,
                  "Colour of the pages' edge, so that no system is taken for another")
      ->check(CLI::IsMember(std::vector<std::string>(kColours.begin(), kColours.end())));
  command
      .add_option("--sessions", given->service.sessions, "Sessions for what is answered at once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--waits", given->service.waits, "Sessions for claims that wait")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
}

}  // namespace pulse::console
