#include "jobs/execution_report.hpp"

#include <utility>

namespace pulse {
namespace {

template <typename Value>
void take_newer(std::optional<Value>& kept, std::optional<Value>& newer) {
  if (newer) kept = std::move(newer);
}

}  // namespace

void TaskProgress::take_newer(TaskProgress newer) {
  pulse::take_newer(fraction, newer.fraction);
  pulse::take_newer(message, newer.message);
  pulse::take_newer(stage, newer.stage);
  pulse::take_newer(checkpoint, newer.checkpoint);
}

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

ExecutionEnd withdrawn_end() {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::failed;
  end.reason = "not begun";
  end.ran_for = std::chrono::nanoseconds::zero();
  return end;
}

}  // namespace pulse
