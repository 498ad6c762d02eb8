#include "claim/due_scan.hpp"

#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "wake/pending_wakes.hpp"

extern "C" {
#include "executor/instrument.h"
}

namespace pulse {
namespace {

// Entries below a head.
constexpr int kLookAtOnce = 1000;
constexpr int64 kFewPages = 8;

// The priority before the next one whose head is remembered: up to there the scan goes.
int16 last_priority(const DueScan* scan) {
  bool ends = scan->next_known < scan->known_count;
  return ends ? static_cast<int16>(scan->known[scan->next_known] - 1) : PG_INT16_MAX;
}

// --- heads --------------------------------------------------------------------------------------

// The priority, run_at and id of the index entry at hand.
Datum entry_column(const DueScan* scan, int column) {
  bool isnull;
  return index_getattr(scan->scan->xs_itup, scan->prefix + column, scan->scan->xs_itupdesc,
                       &isnull);
}

HeadKey entry_key(const DueScan* scan) {
  return {DatumGetTimestampTz(entry_column(scan, 2)), DatumGetInt64(entry_column(scan, 3))};
}

bool is_lost(const DueScan* scan) { return scan->stretch.outcome != Advance::kDone; }

void advance(DueScan* scan, HeadKey to) {
  Walk* walk = &scan->walk;
  scan->stretch.is_open = false;
  note_passed(scan->heads.bit, walk->start.run_at);
  scan->stretch.outcome =
      advance_head(scan->heads, static_cast<int16>(walk->priority), to, &walk->head);
  scan->stretch.walk.head = walk->head;
  walk->expires = walk->head.expires;
}

void end_walk(DueScan* scan) {
  Walk* walk = &scan->walk;
  if (scan->stretch.is_open) {
    advance(scan, walk->begin);
  } else if (walk->priority != kNoPriority && scan->heads.bucket) {
    bool has_passed = walk->begin.run_at != walk->start.run_at || walk->begin.id != walk->start.id;
    if (has_passed) note_passed(scan->heads.bit, walk->start.run_at);
    if (has_passed || walk->expires == 0)
      raise_head(scan->heads, static_cast<int16>(walk->priority), walk->begin, walk->expires,
                 walk->started);
  }
  walk->priority = kNoPriority;
}

// Goes on at this key of this priority.
void jump(DueScan* scan, int16 priority, HeadKey key) {
  ScanKeyData* part = scan->key_parts;
  const Datum values[] = {Int16GetDatum(priority), TimestampTzGetDatum(key.run_at),
                          Int64GetDatum(key.id)};
  const Oid compare[] = {F_BTINT2CMP, F_TIMESTAMPTZ_CMP, F_BTINT8CMP};
  for (int i = 0; i < 3; i++)
    ScanKeyEntryInitialize(&part[i], i < 2 ? SK_ROW_MEMBER : SK_ROW_MEMBER | SK_ROW_END,
                           static_cast<AttrNumber>(scan->prefix + 1 + i),
                           BTGreaterEqualStrategyNumber, InvalidOid, InvalidOid, compare[i],
                           values[i]);
  ScanKey whole = &scan->keys[scan->prefix];
  memset(whole, 0, sizeof(*whole));
  whole->sk_flags = SK_ROW_HEADER;
  whole->sk_attno = part[0].sk_attno;
  whole->sk_strategy = BTGreaterEqualStrategyNumber;
  whole->sk_argument = PointerGetDatum(part);
  rescan_up_to(scan, last_priority(scan));
}

// A transaction's own jobs may lie below a head, and nobody else sees them.
bool sees_what_others_see(const DueScan* scan) {
  return scan->heads.bucket && scan->heads.own == PG_INT64_MAX;
}

void walk_from(DueScan* scan, int16 priority, const HeadFound& head) {
  scan->walk = {
      priority, head.key, head.key, false, head.expires, wall_now(), sees_what_others_see(scan),
      head};
  jump(scan, priority, head.key);
}

int64 pages_read() { return pgBufferUsage.shared_blks_hit + pgBufferUsage.shared_blks_read; }

void begin_to_look(DueScan* scan, int16 priority, const HeadFound& head) {
  scan->look_pages = head.checked.run_at == PG_INT64_MIN ? pages_read() : -1;
  scan->checked = priority;
  scan->left_to_look = kLookAtOnce;
  scan->look_end = head.key;
}

// A head costs a way down the index. A priority that has no entry, nor pages of dead ones, needs
// none.
void forget_if_empty(DueScan* scan) {
  bool is_empty = scan->left_to_look == kLookAtOnce && scan->look_pages >= 0;
  if (is_empty && pages_read() - scan->look_pages <= kFewPages)
    forget_head(scan->heads, static_cast<int16>(scan->checked));
  scan->left_to_look = 0;
}

// Enters the priority of the entry at hand. True when the scan was moved.
bool enter_priority(DueScan* scan, int16 priority) {
  end_walk(scan);
  if (is_lost(scan)) return true;
  HeadKey first = entry_key(scan);
  scan->walk = {priority, first, first, false, 0, wall_now(), false, {}};
  if (scan->checked == priority) return false;
  forget_if_empty(scan);
  HeadFound head = find_head(scan->heads, priority);
  scan->walk.may_advance = sees_what_others_see(scan) && !head.is_to_check;
  scan->walk.head = head;
  if (!head.is_known || !precedes(first, head.key)) return false;
  if (head.is_to_check) {
    begin_to_look(scan, priority, head);
    if (!precedes(first, head.checked)) return false;
    jump(scan, priority, head.checked);
    return true;
  }
  walk_from(scan, priority, head);
  return true;
}

// Goes on with the next priority whose head is remembered. False when there is none.
bool enter_next_known(DueScan* scan) {
  end_walk(scan);
  if (is_lost(scan)) return false;
  forget_if_empty(scan);
  if (scan->next_known == scan->known_count) return false;
  int16 priority = scan->known[scan->next_known++];
  HeadFound head = find_head(scan->heads, priority);
  if (head.is_known && !head.is_to_check) {
    walk_from(scan, priority, head);
    return true;
  }
  scan->checked = priority;
  if (head.is_to_check) begin_to_look(scan, priority, head);
  // What lies there enters the priority.
  jump(scan, priority, head.checked);
  return true;
}

// The look below the head has taken its time: the scan goes on at the head.
bool end_look(DueScan* scan) {
  if (scan->left_to_look == 0) return false;
  HeadKey at = entry_key(scan);
  if (!precedes(at, scan->look_end)) {
    scan->left_to_look = 0;
    return false;
  }
  if (--scan->left_to_look > 0) return false;
  auto priority = static_cast<int16>(scan->walk.priority);
  bool is_left = scan->walk.is_left;
  TimestampTz expires = scan->walk.started;
  if (is_left)
    end_walk(scan);
  else
    expires = note_checked(scan->heads, priority, at, scan->walk.started);
  walk_from(scan, priority, {true, false, scan->look_end, scan->look_end, expires});
  // What was left there is where the next claim begins.
  scan->walk.is_left = is_left;
  if (is_left) scan->walk.may_advance = false;
  return true;
}

// Goes on behind all of this priority. False when nothing follows.
bool skip_priority(DueScan* scan, int16 priority) {
  end_walk(scan);
  if (is_lost(scan)) return false;
  scan->left_to_look = 0;
  bool is_followed = scan->next_known < scan->known_count;
  if (is_followed && scan->known[scan->next_known] == priority + 1) return enter_next_known(scan);
  rescan_priorities(scan, BTGreaterStrategyNumber, F_INT2GT, priority, last_priority(scan));
  return true;
}

// The entry at hand belongs to no ready job.
void pass_entry(DueScan* scan) {
  if (scan->walk.is_left || !scan->heads.bucket) return;
  HeadKey key = entry_key(scan);
  scan->walk.begin = {key.run_at, key.id + 1};
}

// The next entry whose row is visible.
bool next_row(DueScan* scan) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (is_lost(scan)) return false;
    if (!index_getnext_tid(scan->scan, ForwardScanDirection)) {
      if (!enter_next_known(scan)) return false;
      continue;
    }
    if (scan->heads.bucket) {
      auto priority = DatumGetInt16(entry_column(scan, 1));
      if (priority != scan->walk.priority && enter_priority(scan, priority)) continue;
      if (end_look(scan)) continue;
    }
    if (index_fetch_heap(scan->scan, scan->slot)) return true;
    pass_entry(scan);
  }
}

// --- rows ---------------------------------------------------------------------------------------

bool settle(DueScan* scan) {
  while (next_row(scan)) {
    if (!read_ordered_row(scan)) {
      pass_entry(scan);
      continue;
    }
    if (is_row_due(scan)) return true;
    // Everything behind it in this priority is later still.
    leave_row(scan);
    if (!skip_priority(scan, scan->priority)) return false;
  }
  return false;
}

void begin(DueScan* scan) {
  begin_ordered_scan(scan);
  scan->scan->xs_want_itup = scan->heads.bucket != nullptr;
  scan->walk.priority = kNoPriority;
  scan->checked = kNoPriority;
  scan->left_to_look = 0;
  scan->known_count = known_priorities(scan->heads, scan->known);
}

}  // namespace

bool first_due_beyond(DueScan* scan, int16 priority, TimestampTz run_at) {
  begin(scan);
  scan->next_due = run_at;
  while (scan->next_known < scan->known_count && scan->known[scan->next_known] <= priority)
    scan->next_known++;
  return skip_priority(scan, priority) && settle(scan);
}

bool first_due(DueScan* scan) {
  begin(scan);
  if (scan->known_count > 0 && scan->known[0] == PG_INT16_MIN) {
    enter_next_known(scan);
  } else {
    rescan_priorities(scan, BTGreaterEqualStrategyNumber, F_INT2GE, PG_INT16_MIN,
                      last_priority(scan));
  }
  return settle(scan);
}

bool next_due(DueScan* scan) {
  [[maybe_unused]] const ScanKeyData* last = &scan->keys[scan->prefix];
  Assert(!(last->sk_flags & SK_ROW_HEADER) ||
         DatumGetPointer(last->sk_argument) == reinterpret_cast<char*>(scan->key_parts));
  if (scan->left_to_look > 0) note_passed(scan->heads.bit, scan->run_at);
  // What pass_entry would read in the entry is known of the row.
  if (!scan->walk.is_left) scan->walk.begin = {scan->run_at, scan->id + 1};
  return settle(scan);
}

bool catch_up(DueScan* scan, bool* due) {
  Walk* walk = &scan->walk;
  auto priority = static_cast<int16>(walk->priority);
  // Nothing lay between the two heads for a walk that began at the first.
  if (!walk->may_advance || !head_has_moved(scan->heads, priority, &walk->head)) return false;
  if (!precedes({scan->run_at, scan->id}, walk->head.key)) return false;
  walk_from(scan, priority, walk->head);
  *due = settle(scan);
  return true;
}

void begin_stretch(DueScan* scan) {
  scan->stretch = {true, {scan->run_at, scan->id}, scan->walk, Advance::kDone};
}

bool end_stretch(DueScan* scan, bool with_row_at_hand, bool* due) {
  Stretch* stretch = &scan->stretch;
  if (stretch->is_open)
    advance(scan, with_row_at_hand ? HeadKey{scan->run_at, scan->id + 1} : scan->walk.begin);
  Advance outcome = stretch->outcome;
  stretch->outcome = Advance::kDone;
  if (outcome == Advance::kDone) return true;
  scan->walk = stretch->walk;
  auto priority = static_cast<int16>(scan->walk.priority);
  if (outcome == Advance::kBehind) {
    walk_from(scan, priority, scan->walk.head);
  } else {
    scan->walk.may_advance = false;
    jump(scan, priority, stretch->first);
  }
  *due = settle(scan);
  return false;
}

void give_back_row(DueScan* scan, int16 priority, HeadKey key) {
  give_back(scan->heads, priority, key);
  // The walk may have gone on to another priority.
  if (scan->walk.priority != priority) return;
  if (precedes(key, scan->walk.begin)) scan->walk.begin = key;
  scan->walk.is_left = true;
  scan->walk.may_advance = false;
}

void leave_row(DueScan* scan) {
  if (!scan->walk.is_left) scan->walk.begin = {scan->run_at, scan->id};
  scan->walk.is_left = true;
  scan->walk.may_advance = false;
}

void end_due(DueScan* scan) {
  end_walk(scan);
  end_ordered_scan(scan);
}

}  // namespace pulse
