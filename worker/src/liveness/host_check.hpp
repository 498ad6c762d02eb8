// Host check: finds out, after registering, whether earlier workers of this machine are gone, and
// declares gone workers lost: their jobs need not wait until the silence is noticed. The server
// names the processes to check; only this machine can say whether a process exists.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/postgres/session.hpp"
#include "liveness/registration.hpp"

namespace pulse {

class HostCheck {
 public:
  // Whether the process of this pid that started then has gone.
  using IsGone = std::function<bool(std::int64_t pid, const std::string& process_start)>;

  HostCheck(Session& session, Timers& timers, Log& log);

  // Checks now, and once more when workers whose session has just ended have missed a beat.
  void start(const Registration& registration, IsGone is_gone);
  void stop();
  // Other workers were found lost meanwhile: asks the server anew which workers are left.
  void check_again();

  // When the next check is due; nothing where none is.
  std::optional<TimePoint> due() const;

 private:
  struct Gone {
    std::int64_t worker_id;
    std::string reason;
  };

  void check_when_free();
  void check();
  bool send_next();
  void take_processes(const Reply& reply);
  void send_gone();
  void take_declared(const Gone& gone, const Reply& reply);
  void log_failure(const char* statement, const Reply& reply);

  Session& session_;
  Log& log_;
  IsGone is_gone_;
  std::int64_t worker_id_ = 0;
  bool is_wanted_ = false;
  std::deque<Gone> gone_;
  Timer second_check_;
  Timer retry_;
};

}  // namespace pulse
