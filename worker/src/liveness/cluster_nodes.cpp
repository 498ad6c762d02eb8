#include "liveness/cluster_nodes.hpp"

#include <utility>

#include "base/cluster/node_table.hpp"
#include "base/postgres/session_settings.hpp"
#include "base/postgres/sqlstate.hpp"
#include "session/refusal.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNodesDeadline = 5s;
constexpr Duration kNodesPause = 5s;

SessionConfig session_for_question(const ConnectOptions& given) {
  SessionConfig config;
  config.name = "cluster";
  config.open_deadline = given.deadline();
  config.settings = statements::own_settings();
  return config;
}

}  // namespace

ClusterNodes::ClusterNodes(ConnectOptions given, Connection& connection, Timers& timers,
                           const Random& random, Log& log)
    : given_(std::move(given)),
      session_(session_for_question(given_), connection, timers, Reconnect(random), log),
      retry_(timers, [this] { ask(); }),
      patience_(timers, [this] {
        take_refusal(ExitCode::database_gone,
                     in_one_line("no answer of the cluster: " + session_.last_reason(), "",
                                 session_.was_open() ? "" : kHowToConnect));
      }) {
  session_.add_sender([this] { return send_next(); });
  session_.on_refused = [this](const std::string& reason) {
    take_refusal(ExitCode::database_gone, in_one_line(reason, "", kHowToConnect));
  };
  session_.on_unreadable = [this](const std::string& reason) {
    take_refusal(ExitCode::database_gone, reason);
  };
}

void ClusterNodes::ask() {
  is_wanted_ = true;
  retry_.stop();
  session_.open();
  session_.wake();
}

void ClusterNodes::ask_within(Duration patience) {
  patience_.start_in(patience);
  ask();
}

void ClusterNodes::stop() {
  is_wanted_ = false;
  retry_.stop();
  patience_.stop();
  session_.close();
}

bool ClusterNodes::send_next() {
  if (!is_wanted_) return false;
  is_wanted_ = false;
  session_.send(kNodeTable, {}, kNodesDeadline, [this](const Reply& reply) { take(reply); });
  return true;
}

void ClusterNodes::take(const Reply& reply) {
  if (std::holds_alternative<ConnectionLost>(reply)) {
    is_wanted_ = true;
    return;
  }
  if (const auto* error = std::get_if<SqlError>(&reply)) {
    if (is_passing(error->sqlstate)) return retry_.start_in(kNodesPause);
    const auto refusal = refusal_of_node_table(*error, session_.database(), session_.role());
    const bool stays = error->sqlstate == sqlstate::kNoPrivilege;
    return take_refusal(stays ? ExitCode::configuration : ExitCode::database_gone,
                        in_one_line(refusal.reason, "", refusal.hint));
  }
  auto nodes = databases_of_nodes(std::get<QueryResult>(reply), given_);
  if (!is_wanted_) stop();
  on_nodes(std::move(nodes));
}

void ClusterNodes::take_refusal(ExitCode code, const std::string& reason) {
  stop();
  on_refused(code, reason);
}

}  // namespace pulse
