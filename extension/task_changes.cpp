#include "task_changes.hpp"

#include "catalog.hpp"

namespace pulse {
namespace {

uint64 changes = 0;
Oid known_task = InvalidOid;

extern "C" void pulse_task_changed(Datum, Oid relation) {
  if (!OidIsValid(relation) || relation == known_task) changes++;
}

}  // namespace

bool task_changes_are_told() { return catalog()->has_lanes; }

uint64 task_changes() {
  static bool is_registered = false;
  if (!is_registered) CacheRegisterRelcacheCallback(pulse_task_changed, 0);
  is_registered = true;
  if (known_task != catalog()->task) changes++;
  known_task = catalog()->task;
  AcceptInvalidationMessages();
  return changes;
}

}  // namespace pulse
