#include "jobs/execution.hpp"

namespace pulse {

const char* reason_name(EndReason reason) {
  switch (reason) {
    case EndReason::none: return "none";
    case EndReason::timeout: return "timeout";
    case EndReason::stall: return "stall";
    case EndReason::cancelled: return "cancelled";
    case EndReason::unreachable: return "unreachable";
    case EndReason::revoked: return "lost";
    case EndReason::interrupted: return "shutdown";
  }
  return "";
}

}  // namespace pulse
