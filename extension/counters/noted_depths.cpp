#include "counters/noted_depths.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "server/clocks.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

struct Note {
  DepthChange change;
  SubTransactionId savepoint;
};

constexpr int kFirstNotes = 64;
Note first_notes[kFirstNotes];
Note* notes = first_notes;
int note_count = 0;
int note_capacity = kFirstNotes;
bool is_truncated = false;

// The last name of each kind in this transaction: jobs of a batch mostly share it.
struct LastName {
  int length;  // 0: none
  char name[64];
  Depth* depth;
  DepthKey key;
};
LastName last_names[kDepthKinds];

// The last reading of this transaction, in its memory.
struct TakenCount {
  DepthReadings read;
  int64 taken_us;
  bool is_old;  // the transaction has changed a depth since
};
constexpr int64 kTakenForUs = USECS_PER_SEC;
TakenCount taken = {};

// The notes of a long transaction live in its memory.
void grow_changes() {
  Size size = sizeof(Note) * note_capacity;
  auto* grown = static_cast<Note*>(MemoryContextAllocHuge(TopTransactionContext, size * 2));
  memcpy(grown, notes, size);
  if (notes != first_notes) pfree(notes);
  notes = grown;
  note_capacity *= 2;
}

const LastName* look_up(DepthKind kind, const text* name) {
  LastName* last = &last_names[kind];
  auto length = static_cast<int>(VARSIZE_ANY_EXHDR(name));
  const char* data = VARDATA_ANY(name);
  if (length == last->length && memcmp(data, last->name, length) == 0) return last;
  last->length = 0;
  last->key = depth_key(data, length);
  last->depth = depth_of(kind, last->key, data, length);
  if (length <= static_cast<int>(sizeof(last->name))) {
    memcpy(last->name, data, length);
    last->length = length;
  }
  return last;
}

// Changes that follow each other mostly are of the same task and queue.
DepthChange* change_of(DepthKind kind, Datum name) {
  taken.is_old = true;
  const LastName* of = look_up(kind, DatumGetTextPP(name));
  SubTransactionId savepoint = GetCurrentSubTransactionId();
  for (int i = note_count - 1; i >= 0 && i >= note_count - 4; i--) {
    DepthChange* change = &notes[i].change;
    if (notes[i].savepoint == savepoint && change->kind == kind && change->depth == of->depth)
      return change;
  }
  if (note_count == note_capacity) grow_changes();
  Note* note = &notes[note_count++];
  *note = {};
  note->savepoint = savepoint;
  note->change.depth = of->depth;
  note->change.key = of->key;
  note->change.kind = kind;
  return &note->change;
}

// Calls use(change) with the change of the row's task, and with that of its queue.
template <typename Use>
void with_changes_of(const DepthRow& row, Use use) {
  use(change_of(kTaskDepth, row.identifier));
  if (!row.queue_name.isnull) use(change_of(kQueueDepth, row.queue_name.value));
}

void note_row(const DepthRow& row, int32 jobs) {
  DepthState state = depth_state(row);
  with_changes_of(row, [&](DepthChange* change) {
    change->jobs[state] += jobs;
    if (jobs > 0 && state != kRunning) change->run_at.add(row.run_at);
  });
}

void note_move(const DepthRow& before, const DepthRow& after) {
  DepthState from = depth_state(before);
  DepthState to = depth_state(after);
  with_changes_of(after, [&](DepthChange* change) {
    change->jobs[from]--;
    change->jobs[to]++;
    if (to != kRunning) change->run_at.add(after.run_at);
    if (to == kRunning && from != kRunning) change->has_claimed = true;
  });
}

// Direct writes keep the names, and pass the same datums.
bool has_same_names(const DepthRow& a, const DepthRow& b) {
  if (a.identifier == b.identifier && a.queue_name.value == b.queue_name.value) return true;
  return is_same_text(a.identifier, b.identifier) && a.queue_name.isnull == b.queue_name.isnull &&
         (a.queue_name.isnull || is_same_text(a.queue_name.value, b.queue_name.value));
}

bool is_taken() {
  return taken.read.readings && !taken.is_old &&
         (IsolationUsesXactSnapshot() || monotonic_us() - taken.taken_us < kTakenForUs);
}

DepthReadings take_count() {
  Size size = sizeof(DepthChange) * note_count;
  auto* own = static_cast<DepthChange*>(MemoryContextAllocHuge(CurrentMemoryContext, size + 1));
  for (int i = 0; i < note_count; i++) own[i] = notes[i].change;
  return read_depths(own, note_count);
}

// The answer for one note of a transaction holds for the next note.
bool counts_depths() { return note_count > 0 || has_depths(); }

}  // namespace

DepthState depth_state(const DepthRow& row) {
  if (row.state == catalog()->state_ready) return kReady;
  if (row.state != catalog()->state_parked) return kRunning;
  return row.is_after_others ? kAfterOthers : kParked;
}

DepthRow depth_row(TupleTableSlot* row) {
  DepthRow read;
  bool isnull;
  read.identifier = slot_getattr(row, kJobIdentifier, &isnull);
  read.queue_name.value = slot_getattr(row, kJobQueueName, &read.queue_name.isnull);
  read.state = DatumGetObjectId(slot_getattr(row, kJobState, &isnull));
  read.run_at = DatumGetTimestampTz(slot_getattr(row, kJobRunAt, &isnull));
  // The column stands far behind the others, and 0.1.0 lacks it.
  read.is_after_others = read.state == catalog()->state_parked && catalog()->has_index_lanes &&
                         !slot_attisnull(row, kJobWaitsOn);
  return read;
}

void note_added_job(const DepthRow& row) {
  if (counts_depths()) note_row(row, 1);
}

void note_deleted_job(const DepthRow& row) {
  if (counts_depths()) note_row(row, -1);
}

void note_changed_job(const DepthRow& before, const DepthRow& after) {
  bool is_same = has_same_names(before, after);
  bool is_moved =
      !is_same || depth_state(before) != depth_state(after) || before.run_at != after.run_at;
  if (!is_moved || !counts_depths()) return;
  if (is_same) return note_move(before, after);
  note_row(before, -1);
  note_row(after, 1);
}

void note_truncated_jobs() { is_truncated = has_depths(); }

DepthReadings read_depths_with_own() {
  // The rows that this transaction removed were not counted one by one.
  if (is_truncated) return {};
  if (is_taken()) return taken.read;
  if (taken.read.readings) pfree(taken.read.readings);
  taken = {};
  taken.read = take_count();
  taken.taken_us = monotonic_us();
  return taken.read;
}

bool are_depths_known() { return !is_truncated && has_counted_depths(); }

void add_noted_depths() {
  if ((note_count > 0 || is_truncated) && begin_adding_depths()) {
    TimestampTz now = GetCurrentTransactionStopTimestamp();
    for (int i = 0; i < note_count; i++) add_depth_change(notes[i].change, now);
    if (is_truncated) add_drift();
    end_adding_depths();
  }
  forget_noted_depths();
}

void leave_noted_depths_to_prepared() {
  if (note_count > 0 || is_truncated) enter_prepared_depths(GetTopTransactionIdIfAny());
}

void forget_noted_depths() {
  notes = first_notes;
  note_capacity = kFirstNotes;
  note_count = 0;
  is_truncated = false;
  taken = {};
  for (LastName& last : last_names) last.length = 0;
}

// A subtransaction with a higher id began within the undone one.
void forget_noted_depths_since(SubTransactionId undone) {
  taken.is_old = true;
  while (note_count > 0 && notes[note_count - 1].savepoint >= undone) note_count--;
}

}  // namespace pulse
