#include "liveness/registration.hpp"

#include <algorithm>

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// The server's default stands in where sweeping is off, as in the server's own clock.
constexpr Duration kDefaultSweepInterval = 5s;

// In characters, as the server counts.
constexpr std::size_t kMaxName = 512;

}  // namespace

std::optional<std::string> worker_name_problem(std::string_view name) {
  std::size_t characters = 0;
  for (std::string_view rest = name; !rest.empty(); ++characters) {
    const std::size_t length = utf8_character_length(rest);
    if (length == 0 || rest.front() == '\0') return "it is not UTF-8";
    rest.remove_prefix(length);
  }
  if (characters >= 1 && characters <= kMaxName) return std::nullopt;
  return "it has " + std::to_string(characters) + " characters, and may have 1 to " +
         std::to_string(kMaxName);
}

Duration Registration::kill_allowance() const {
  return std::min<Duration>(1s, sweep_threshold / 10);
}

Duration Registration::margin() const {
  const Duration sweep = sweep_interval.value_or(kDefaultSweepInterval);
  return sweep * 5 / 4 + kill_allowance();
}

Duration Registration::silence_limit() const {
  // The server refuses settings that leave less than a heartbeat interval; a worker that must go on
  // with worse trusts half of the threshold.
  return std::max(sweep_threshold - margin(), sweep_threshold / 2);
}

Registration registration_of(const QueryResult::Row& row) {
  Registration registration;
  registration.worker_id = row.integer("id");
  registration.heartbeat_interval =
      std::max(row.seconds("heartbeat_interval"), kMinHeartbeatInterval);
  registration.sweep_threshold = row.seconds("sweep_threshold");
  registration.poll_interval = row.seconds("poll_interval");
  const Duration sweep = row.seconds("sweep_interval");
  if (sweep > Duration::zero()) registration.sweep_interval = sweep;
  return registration;
}

}  // namespace pulse
