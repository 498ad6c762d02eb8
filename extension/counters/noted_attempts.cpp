#include "counters/noted_attempts.hpp"

#include "access/columns.hpp"
#include "server/advisory_lock.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// Equal events that follow each other share a note, as most of a batch do.
struct Note {
  CounterId counter;
  AttemptEvent event;
  uint8 bucket;
  SubTransactionId savepoint;
  uint32 times;

  bool is_like(const Note& other) const {
    return counter.key == other.counter.key && counter.place == other.counter.place &&
           counter.kind == other.counter.kind && event == other.event && bucket == other.bucket &&
           savepoint == other.savepoint;
  }
};

constexpr int kFirstNotes = 64;
Note first_notes[kFirstNotes];
Note* notes = first_notes;
int note_count = 0;
int note_capacity = kFirstNotes;

// The last name of each kind in this transaction: jobs of a batch mostly share it.
struct LastName {
  int length;  // 0: none
  char name[64];
  CounterId counter;
};
LastName last_names[kCounterKinds];

struct AddedMinute {
  int64 minute;  // 0: none
  SubTransactionId savepoint;
};
AddedMinute added = {};

// The notes of a long transaction live in its memory.
void grow() {
  Size size = sizeof(Note) * note_capacity;
  auto* grown = static_cast<Note*>(MemoryContextAllocHuge(TopTransactionContext, size * 2));
  memcpy(grown, notes, size);
  if (notes != first_notes) pfree(notes);
  notes = grown;
  note_capacity *= 2;
}

CounterId counter_named(CounterKind kind, const text* name) {
  LastName* last = &last_names[kind];
  auto length = static_cast<int>(VARSIZE_ANY_EXHDR(name));
  if (length == last->length && memcmp(VARDATA_ANY(name), last->name, length) == 0)
    return last->counter;
  CounterId counter = counter_of(kind, name);
  if (length <= static_cast<int>(sizeof(last->name))) {
    memcpy(last->name, VARDATA_ANY(name), length);
    last->length = length;
    last->counter = counter;
  }
  return counter;
}

void note(CounterKind kind, Datum name, AttemptEvent event, int bucket) {
  Note noted = {counter_named(kind, DatumGetTextPP(name)), event, static_cast<uint8>(bucket),
                GetCurrentSubTransactionId(), 1};
  // The last two notes are of a task and its queue.
  for (int i = note_count - 1; i >= 0 && i >= note_count - 2; i--)
    if (notes[i].is_like(noted)) {
      notes[i].times++;
      return;
    }
  if (note_count == note_capacity) grow();
  notes[note_count++] = noted;
}

// A run_at may be infinite.
int64 elapsed_us(TimestampTz from, TimestampTz to) {
  return TIMESTAMP_NOT_FINITE(from) || from > to ? 0 : to - from;
}

void note_event(TupleTableSlot* row, AttemptEvent event, int64 duration_us) {
  int bucket = histogram_bucket(duration_us);
  note(kTaskCounter, value_of(row, kJobIdentifier), event, bucket);
  if (!slot_attisnull(row, kJobQueueName))
    note(kQueueCounter, value_of(row, kJobQueueName), event, bucket);
}

// The answer for one note of a transaction holds for the next note.
bool counts() { return settings.enable_counters && (note_count > 0 || has_counters()); }

TimestampTz moment_of(TupleTableSlot* row, JobColumn column) {
  return DatumGetTimestampTz(value_of(row, column));
}

}  // namespace

void note_start(TupleTableSlot* row) {
  if (!counts()) return;
  note_event(row, kStarted, elapsed_us(moment_of(row, kJobRunAt), moment_of(row, kJobClaimedAt)));
}

void note_attempt_end(TupleTableSlot* row, AttemptEvent event, TimestampTz now) {
  if (!counts()) return;
  note_event(row, event, elapsed_us(moment_of(row, kJobClaimedAt), now));
}

void note_added_minute(int64 minute) {
  Assert(holds_advisory_lock(LockKind::kCounters, 0, ExclusiveLock));
  added = {minute, GetCurrentSubTransactionId()};
}

void count_noted() {
  int64 period = note_count > 0 ? present_period() : 0;
  for (int i = 0; i < note_count; i++)
    count_events(notes[i].counter, notes[i].event, notes[i].bucket, period, notes[i].times);
  if (added.minute != 0) set_added_minute(added.minute);
  forget_noted();
}

void forget_noted() {
  notes = first_notes;
  note_capacity = kFirstNotes;
  note_count = 0;
  for (LastName& last : last_names) last.length = 0;
  added = {};
}

// A subtransaction with a higher id began within the undone one.
void forget_noted_since(SubTransactionId undone) {
  while (note_count > 0 && notes[note_count - 1].savepoint >= undone) note_count--;
  if (added.savepoint >= undone) added = {};
}

}  // namespace pulse
