// Registration: the id under which the server knows this process, and the times that follow from
// the server's settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop/duration.hpp"
#include "base/postgres/query_result.hpp"

namespace pulse {

// Between SIGTERM and SIGKILL of a task at a limit of the job. The server is told of the grace,
// with time to kill, and ends the attempt of a living worker only after the grace.
constexpr Duration kTermGrace = std::chrono::seconds(5);
constexpr Duration kKillGrace = kTermGrace + std::chrono::seconds(1);

// Below this a beat costs more than it tells.
constexpr Duration kMinHeartbeatInterval = std::chrono::milliseconds(50);

// Why no worker registers under this name; nothing if the name is allowed.
std::optional<std::string> worker_name_problem(std::string_view name);

struct Registration {
  std::int64_t worker_id = 0;
  Duration heartbeat_interval{};
  Duration sweep_threshold{};
  std::optional<Duration> sweep_interval;  // absent: only an operator sweeps
  Duration poll_interval{};                // between claims where no wait is possible

  // How long this worker stops trusting claims before the server may take the worker as lost: the
  // most that one step of the liveness clock adds, and time to kill a task.
  Duration margin() const;
  // From the send time of a good heartbeat: within this time every claim is certainly still this
  // worker's.
  Duration silence_limit() const;
  // How long killing may take at the end of the limit.
  Duration kill_allowance() const;
};

// The row that register_worker returns.
Registration registration_of(const QueryResult::Row& row);

}  // namespace pulse
