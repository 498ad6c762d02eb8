// Worker sessions: the sessions of a worker with the database, and the state of all three together.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "base/postgres/session.hpp"

namespace pulse {

struct Connections {
  Connection& claim;
  Connection& finish;
  Connection& heartbeat;
};

class WorkerSessions {
 public:
  WorkerSessions(const Connections& connections, Duration open_deadline, Timers& timers,
                 const Random& random, Log& log);

  void set_reconnect_cap(Duration cap);
  void close();

  Session claim;
  Session finish;
  Session heartbeat;

  // The database refuses this worker, and goes on refusing.
  std::function<void(const std::string& reason)> on_refused;
  std::function<void(const std::string& reason)> on_unreadable;
  std::function<void(const Notice&)> on_notice;

 private:
  void wire(Session& session);
  std::array<Session*, 3> all() { return {&claim, &finish, &heartbeat}; }
  bool are_refused_for_good();
  void tell_pooled();

  Timers& timers_;
  Log& log_;
  bool is_pooled_told_ = false;
};

}  // namespace pulse
