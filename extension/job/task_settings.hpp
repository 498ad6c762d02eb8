// What pulse.task says of one task, as far as a claim hands it to the worker.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct TaskSettings {
  Datum timeout;  // interval
  bool timeout_null;
  Datum stall_timeout;
  bool stall_timeout_null;
  Datum on_unreachable;
  bool on_unreachable_null;
  Datum handler;
  bool handler_null;
  int max_crashes;  // -1: never quarantined
};

// Reads them under the snapshot; a task without a row has the defaults.
TaskSettings task_settings(Datum identifier, Snapshot snapshot);

}  // namespace pulse
