#include "job/task_changes.hpp"

#include "access/catalog.hpp"
#include "server/invalidation.hpp"

namespace pulse {
namespace {

uint64 changes = 0;
Oid known_task = InvalidOid;

void task_changed(Oid relation) {
  if (!OidIsValid(relation) || relation == known_task) changes++;
}

}  // namespace

bool task_changes_are_told() { return catalog()->has_index_lanes; }

uint64 task_changes() {
  static bool is_registered = false;
  if (!is_registered) listen_to_invalidations(task_changed);
  is_registered = true;
  if (known_task != catalog()->task) changes++;
  known_task = catalog()->task;
  AcceptInvalidationMessages();
  return changes;
}

void count_rollback_as_task_change() { changes++; }

}  // namespace pulse
