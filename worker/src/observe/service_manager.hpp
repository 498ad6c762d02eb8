// Service manager: the worker's messages to systemd, or to another service manager with systemd's
// protocol: ready, stopping, a line of status, and that the loop still runs. Without NOTIFY_SOCKET
// the worker sends nothing.
//
// One datagram a message, so libsystemd, which would cost each worker a megabyte, is not needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "base/loop/interval_timer.hpp"
#include "base/loop/unique_fd.hpp"
#include "observe/health.hpp"

namespace pulse {

class ServiceManager {
 public:
  struct Wishes {
    std::string socket;                // a path, or @ and a name; empty: no manager listens
    std::optional<Duration> watchdog;  // without a word for so long this process is restarted
  };
  // Takes the variables out of the environment, so that no child takes them for its own. Before any
  // thread is started.
  static Wishes take_wishes();

  ServiceManager(const Wishes& wishes, Timers& timers, Log& log);
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool is_listening() const { return socket_.valid(); }
  // At the end of each iteration of the loop.
  void publish(const WorkerState& state);
  // Before the configuration is read anew, and after.
  void begin_reload();
  void end_reload();

 private:
  void send(const std::string& message);
  void send_waiting();
  void tell_status();

  UniqueFd socket_;
  std::string address_;
  WorkerState state_;
  bool has_begun_ = false;
  bool was_ready_ = false;
  bool was_stopping_ = false;
  std::string last_status_;
  std::vector<std::string> waiting_;  // while the listener does not read
  std::optional<IntervalTimer> watchdog_;
  std::optional<IntervalTimer> status_;
};

}  // namespace pulse
