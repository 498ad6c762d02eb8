// Exit codes: how pulse-worker ends; the numbers come from sysexits.h.
#pragma once

namespace pulse {

enum class ExitCode {
  drained = 0,
  usage = 64,
  // Refused for good: the database or the role is missing, or the extension in the database.
  database_gone = 69,
  exhausted = 71,  // the machine has no memory or no descriptors for the worker
  forced = 75,     // told to stop before all tasks were done; interrupted jobs are retried
  configuration = 78,
};

}  // namespace pulse
