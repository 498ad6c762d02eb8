// Reported claims: the jobs of this process that a heartbeat names to the server.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace pulse {

// Names one claim. The same job claimed again has another token: the earlier claim is then over.
struct ClaimKey {
  std::int64_t job_id = 0;
  std::int64_t token = 0;
  auto operator<=>(const ClaimKey&) const = default;
};

// Where a heartbeat reads the claims to report: the held jobs.
class ReportedClaims {
 public:
  virtual ~ReportedClaims() = default;
  // The claims of one worker id, in order.
  virtual std::vector<ClaimKey> claims_of(std::int64_t worker_id) const = 0;
};

}  // namespace pulse
