// pulse serve: pages for a browser, and the HTTP API, until a signal ends the server.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "api/api.hpp"
#include "base/log/name_list.hpp"
#include "base/loop/signals_blocked.hpp"
#include "command_line/command_line.hpp"
#include "command_line/refusals.hpp"
#include "commands/commands.hpp"
#include "database/interrupt.hpp"
#include "html/url.hpp"
#include "pages/frame.hpp"
#include "pages/nodes/nodes.hpp"
#include "pages/pages.hpp"
#include "service/asked_nodes.hpp"
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
  SiteSessions sessions;
  Appearance appearance;
  bool is_json = false;
};

bool is_loopback(const HttpAddress& address) {
  return address.host.starts_with("127.") || address.host == "::1";
}

// Waits for a signal by which a script, a supervisor or a person asks a server to end.
int wait_for_signal() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  int number = 0;
  while (sigwait(&ends, &number) != 0) {
  }
  return number;
}

void add_health(Router& router) {
  router.add("GET", "/healthz", Need::nothing,
             [](const Request& /*request*/) { return Response{.body = "ok\n"}; });
}

using SitePtr = std::unique_ptr<Site>;

// The whole site of one database; the site of a node is below the node's path.
SitePtr site_of(const std::string& node, const Database& database, const Serve& serve, Log& log) {
  auto site = std::make_unique<Site>(node, &database, serve.sessions, log);
  add_health(site->router);
  add_api(site->router, serve.service.origin.address() + path_of_node(node));
  add_pages(site->router);
  return site;
}

SitePtr site_of_all_nodes(std::size_t count, AskedNodes& nodes, const Serve& serve, Log& log) {
  auto site = std::make_unique<Site>("", nullptr, SiteSessions{serve.sessions.quick, 0}, log);
  add_health(site->router);
  add_nodes_pages(site->router, count, [&nodes](const Access& access, const NodeTask& task) {
    return nodes.ask(access, task);
  });
  return site;
}

Service::Sites pointers_to(const std::vector<SitePtr>& sites) {
  Service::Sites pointers;
  for (const SitePtr& site : sites) pointers.push_back(site.get());
  return pointers;
}

// The list of nodes that the server was started with.
class KnownNodes {
 public:
  KnownNodes(const Cluster& cluster, Log& log)
      : cluster_(cluster), log_(log), asked_(one_database(cluster), kListPatience) {}

  // Reads the list again. A list that cannot be had is no change.
  bool have_changed() {
    const auto read = std::make_shared<std::vector<NamedDatabase>>();
    const std::string trouble =
        asked_.run_at(kName, [read, given = cluster_.given](Database& database) {
          *read = read_nodes(database, given);
        });
    if (!trouble.empty()) {
      log_.warning("cluster_refused", {{"reason", trouble}});
      return false;
    }
    std::vector<std::string> names;
    for (const NamedDatabase& node : *read) names.push_back(node.name);
    log_.info("databases",
              {{"count", static_cast<std::int64_t>(names.size())}, {"names", name_list(names)}});
    return *read != cluster_.nodes;
  }

 private:
  static constexpr const char* kName = "cluster";
  static constexpr std::chrono::seconds kListPatience{5};

  static std::vector<NodeDatabase> one_database(const Cluster& cluster) {
    std::vector<NodeDatabase> one;
    one.push_back({kName, Database(cluster.given)});
    return one;
  }

  const Cluster& cluster_;
  Log& log_;
  NodeSessions asked_;
};

// Returns whether the server is to start again, because the cluster has other nodes.
bool wait_to_end(const std::optional<Cluster>& cluster, Log& log) {
  std::optional<KnownNodes> known;
  if (cluster) known.emplace(*cluster, log);
  while (wait_for_signal() == SIGHUP && known) {
    if (known->have_changed()) return true;
  }
  return false;
}

// The process goes on as a new server, with the process id and the standard streams of this server.
// A signal to read the list again waits until the new server listens to signals. Returns where the
// system refuses.
void start_again(const char* const* arguments) {
  sigset_t waiting;
  sigemptyset(&waiting);
  sigaddset(&waiting, SIGHUP);
  pthread_sigmask(SIG_SETMASK, &waiting, nullptr);
  // The file of the program by its name, for the name of the process, or else the open file.
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code error;
  const std::string path = std::filesystem::read_symlink(kSelf, error).string();
  for (const char* program : {path.c_str(), kSelf}) {
    execv(program, const_cast<char* const*>(arguments));
  }
  std::fprintf(stderr, "pulse: no new server could be started: %s\n", std::strerror(errno));
}

ExitStatus serve(Console& console, Serve serve) {
  serve.service.address = std::get<HttpAddress>(parse_http_address(serve.listen));
  if (!serve.origin.empty()) {
    serve.service.origin = std::get<Origin>(parse_origin(serve.origin));
  }
  if (serve.tokens.empty() && !is_loopback(serve.service.address)) {
    return report_usage("--listen " + serve.listen +
                        " can be reached from elsewhere; give --tokens FILE, too");
  }
  auto tokens = Tokens::read(serve.tokens);
  if (const auto* problem = std::get_if<std::string>(&tokens)) {
    return report_usage("--tokens: " + *problem);
  }
  leave_interrupts();
  const SignalsBlocked blocked;
  Log log(console.options.is_json ? LogFormat::json : LogFormat::text, LogLevel::info, 2);
  set_url_prefix(serve.service.origin.prefix);
  for (const NodeDatabase& node : console.nodes) serve.appearance.nodes.push_back(node.name);
  set_appearance(serve.appearance);
  std::optional<AskedNodes> asked;  // outlives the threads of the sites
  std::vector<SitePtr> sites;
  for (const NodeDatabase& node : console.nodes) {
    sites.push_back(site_of(node.name, node.database, serve, log));
  }
  if (sites.empty()) {
    sites.push_back(site_of("", console.database, serve, log));
  } else {
    asked.emplace(pointers_to(sites));
    sites.push_back(site_of_all_nodes(console.nodes.size(), *asked, serve, log));
  }
  auto started =
      Service::start(serve.service, std::move(std::get<Tokens>(tokens)), pointers_to(sites), log);
  if (const auto* problem = std::get_if<std::string>(&started)) return report_usage(*problem);
  auto& service = std::get<std::unique_ptr<Service>>(started);
  log.info("serving", {{"http", service->address().text()}});
  const bool is_again = wait_to_end(console.cluster, log);
  log.info(is_again ? "starting_again" : "ending");
  const bool have_all_ended = service->stop();
  log.close();
  if (is_again) start_again(console.arguments);
  const ExitStatus status = is_again ? ExitStatus::refused : ExitStatus::done;
  // Threads of a database that hangs use what an ordinary end destroys.
  if (!have_all_ended) std::quick_exit(static_cast<int>(status));
  return status;
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
  CLI::App& command = line.add(
      "serve", "Pages for a browser, and the HTTP API",
      [given](Console& console) { return serve(console, *given); }, Reach::all_at_once);
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
  command.add_option("--sessions", given->sessions.quick, "Sessions for what is answered at once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--waits", given->sessions.waiting, "Sessions for claims that wait")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
}

}  // namespace pulse::console
