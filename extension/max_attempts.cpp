#include "max_attempts.hpp"

#include "settings.hpp"
#include "shared_memory.hpp"
#include "task_changes.hpp"
#include "task_row.hpp"

namespace pulse {
namespace {

constexpr int kDefaultMaxAttempts = 25;

// What this session has read of a task, if nothing was changed since. Each name has one place.
struct KnownTask {
  uint64 changes;
  int64 until_us;  // on the monotonic clock
  int max_attempts;
  int length;  // of the name; 0: nothing is known
  char name[48];
};
KnownTask known_tasks[16];

// Somebody may have switched the trigger off.
constexpr int64 kLongestUs = 60 * USECS_PER_SEC;

bool is_about(const KnownTask& known, const char* name, int length) {
  return known.length == length && memcmp(known.name, name, length) == 0;
}

int read_max_attempts(Datum identifier, Snapshot snapshot) {
  int found = kDefaultMaxAttempts;
  with_task_row(identifier, snapshot, [&found](TupleTableSlot* row) {
    bool isnull;
    Datum own = slot_getattr(row, kTaskMaxAttempts, &isnull);
    if (!isnull) found = DatumGetInt16(own);
  });
  return found;
}

// With a snapshot that is not older than what was heard of changes.
int read_latest_max_attempts(Datum identifier) {
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  int found = read_max_attempts(identifier, snapshot);
  UnregisterSnapshot(snapshot);
  return found;
}

}  // namespace

int task_max_attempts(Datum identifier) {
  text* text_of = DatumGetTextPP(identifier);
  const char* name = VARDATA_ANY(text_of);
  int length = static_cast<int>(VARSIZE_ANY_EXHDR(text_of));
  KnownTask* known = &known_tasks[fnv1a(name, length) % lengthof(known_tasks)];
  // A transaction with one snapshot for all is to see what that shows.
  if (static_cast<Size>(length) > sizeof(known->name) || IsolationUsesXactSnapshot() ||
      !task_changes_are_told())
    return read_max_attempts(identifier, GetActiveSnapshot());
  uint64 changes = task_changes();
  int64 now_us = monotonic_us();
  if (is_about(*known, name, length) && known->changes == changes && now_us < known->until_us)
    return known->max_attempts;
  known->length = 0;
  int found = read_latest_max_attempts(identifier);
  known->changes = changes;
  known->until_us = now_us + kLongestUs;
  known->max_attempts = found;
  memcpy(known->name, name, length);
  known->length = length;
  return found;
}

}  // namespace pulse
