// How pulse-worker ends; the numbers are those of sysexits.h.
#pragma once

namespace pulse {

enum class ExitCode {
  drained = 0,
  usage = 64,
  database_gone = 69,  // refused for good: no such database or role, or no extension in it
  exhausted = 71,      // the machine has no memory or no descriptors for it
  forced = 75,         // told to stop before its tasks were done; they are retried
  configuration = 78,
};

}  // namespace pulse
