// Cluster nodes: asks a server of a cluster of Citus which nodes there are: at the start, and again
// whenever told to. The session opens for the question and closes with the answer. While no server
// answers, the session goes on trying, and the workers of the nodes known so far go on, too.
//
// Invariants (only the loop's thread reads and writes):
// - `is_wanted_` is set from ask() until the question is sent, so a change of the list after ask()
//   is in the answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/postgres/connection.hpp"
#include "base/postgres/session.hpp"
#include "liveness/exit_code.hpp"

namespace pulse {

class ClusterNodes {
 public:
  ClusterNodes(ConnectOptions given, Connection& connection, Timers& timers, const Random& random,
               Log& log);
  ClusterNodes(const ClusterNodes&) = delete;
  ClusterNodes& operator=(const ClusterNodes&) = delete;

  void ask();
  // As ask(); on_refused comes after this time without an answer.
  void ask_within(Duration patience);
  // No callback comes afterwards.
  void stop();

  std::function<void(std::vector<NamedDatabase> nodes)> on_nodes;
  // The server refuses the question; the session stays closed until the next ask().
  std::function<void(ExitCode code, const std::string& reason)> on_refused;

 private:
  bool send_next();
  void take(const Reply& reply);
  void take_refusal(ExitCode code, const std::string& reason);

  const ConnectOptions given_;
  Session session_;
  bool is_wanted_ = false;
  Timer retry_;
  Timer patience_;
};

}  // namespace pulse
