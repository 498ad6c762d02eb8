#include "job/known_task.hpp"

#include "job/task_changes.hpp"
#include "job/task_row.hpp"
#include "server/clocks.hpp"
#include "server/hash.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

constexpr int kDefaultMaxAttempts = 25;

// Somebody may have switched the trigger off that tells of changes.
constexpr int64 kMaxUs = 60 * USECS_PER_SEC;

struct TaskFacts {
  bool has_row;
  int max_attempts;
};

// Each name has one place.
struct KnownTask {
  uint64 changes;
  int64 until_us;  // on the monotonic clock
  TaskFacts facts;
  int length;  // of the name; 0: nothing is known
  char name[48];
};
KnownTask known_tasks[16];

TaskFacts read_facts(Datum identifier, Snapshot snapshot) {
  TaskFacts facts = {false, kDefaultMaxAttempts};
  with_task_row(identifier, snapshot, [&facts](TupleTableSlot* row) {
    facts.has_row = true;
    bool isnull;
    Datum own = slot_getattr(row, kTaskMaxAttempts, &isnull);
    if (!isnull) facts.max_attempts = DatumGetInt16(own);
  });
  return facts;
}

// With a snapshot that is not older than what was heard of changes.
TaskFacts read_latest_facts(Datum identifier) {
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TaskFacts facts = read_facts(identifier, snapshot);
  UnregisterSnapshot(snapshot);
  return facts;
}

bool is_still_known(const KnownTask& known, const char* name, int length, uint64 changes) {
  return known.length == length && memcmp(known.name, name, length) == 0 &&
         known.changes == changes && monotonic_us() < known.until_us;
}

// Null where nothing may be remembered: a transaction with one snapshot for all is to see what that
// shows.
const TaskFacts* known_facts(Datum identifier) {
  text* text_of = DatumGetTextPP(identifier);
  const char* name = VARDATA_ANY(text_of);
  int length = static_cast<int>(VARSIZE_ANY_EXHDR(text_of));
  KnownTask* known = &known_tasks[fnv1a(name, length) % lengthof(known_tasks)];
  if (static_cast<Size>(length) > sizeof(known->name) || IsolationUsesXactSnapshot() ||
      !task_changes_are_told())
    return nullptr;
  uint64 changes = task_changes();
  if (is_still_known(*known, name, length, changes)) return &known->facts;
  known->length = 0;
  known->facts = read_latest_facts(identifier);
  known->changes = changes;
  known->until_us = monotonic_us() + kMaxUs;
  memcpy(known->name, name, length);
  known->length = length;
  return &known->facts;
}

}  // namespace

int task_max_attempts(Datum identifier) {
  const TaskFacts* known = known_facts(identifier);
  return known ? known->max_attempts : read_facts(identifier, GetActiveSnapshot()).max_attempts;
}

bool task_is_unset(Datum identifier) {
  const TaskFacts* known = known_facts(identifier);
  return known && !known->has_row;
}

}  // namespace pulse
