#include "claim/due_scan.hpp"

#include "job/table.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// Maximum number of index entries that one claim checks below an expired low-water mark.
constexpr int kMaxChecked = 1000;
constexpr int64 kFewPages = 8;

// The last priority that the scan reads before the next priority with a known low-water mark.
int16 last_priority(const DueScan* scan) {
  bool ends = scan->next_known < scan->known_count;
  return ends ? static_cast<int16>(scan->known[scan->next_known] - 1) : PG_INT16_MAX;
}

// --- low-water marks
// -------------------------------------------------------------------------------

// Column 1, 2 or 3 after the prefix of the current index entry: priority, run_at, id.
Datum entry_column(const DueScan* scan, int column) {
  bool isnull;
  return index_getattr(scan->scan->xs_itup, scan->prefix + column, scan->scan->xs_itupdesc,
                       &isnull);
}

OrderKey entry_key(const DueScan* scan) {
  return {DatumGetTimestampTz(entry_column(scan, 2)), DatumGetInt64(entry_column(scan, 3))};
}

void close_range(DueScan* scan) {
  scan->is_range_open = false;
  scan->range = advance_low_water_mark(scan->low_water, static_cast<int16>(scan->walk.priority),
                                       scan->walk.begin);
}

void end_walk(DueScan* scan) {
  Walk* walk = &scan->walk;
  if (scan->is_range_open) {
    close_range(scan);
  } else if (walk->priority != kNoPriority && scan->low_water.bucket) {
    bool has_passed = walk->begin.run_at != walk->start.run_at || walk->begin.id != walk->start.id;
    if (has_passed) note_passed(scan->low_water.bit, walk->start.run_at);
    if (has_passed || walk->expires == 0)
      raise_low_water_mark(scan->low_water, static_cast<int16>(walk->priority), walk->begin,
                           walk->expires, walk->started);
  }
  walk->priority = kNoPriority;
}

// Repositions the scan at this key of this priority.
void jump(DueScan* scan, int16 priority, OrderKey key) {
  rescan_from(scan, {priority, key.run_at, key.id}, last_priority(scan));
}

// False in a transaction that made jobs ready: these jobs may lie below the low-water mark,
// invisible to other claims.
bool has_common_view(const DueScan* scan) {
  return scan->low_water.bucket && scan->low_water.own_run_at == PG_INT64_MAX;
}

void walk_from(DueScan* scan, int16 priority, const FoundLowWater& found) {
  scan->walk = {
      priority, found.key, found.key, false, found.expires, wall_now(), has_common_view(scan)};
  jump(scan, priority, found.key);
}

void begin_check(DueScan* scan, int16 priority, const FoundLowWater& found) {
  scan->check_pages = found.checked.run_at == PG_INT64_MIN ? pages_read() : -1;
  scan->checked = priority;
  scan->left_to_check = Max(kMaxChecked / scan->low_water.sharers, 1);
  scan->has_checked = false;
  scan->check_end = found.key;
}

// A low-water mark costs each claim an index descent. A priority without entries and without pages
// of dead entries needs none.
void forget_if_empty(DueScan* scan) {
  bool is_empty = scan->left_to_check > 0 && !scan->has_checked && scan->check_pages >= 0;
  if (is_empty && pages_read() - scan->check_pages <= kFewPages)
    forget_low_water_mark(scan->low_water, static_cast<int16>(scan->checked));
  scan->left_to_check = 0;
}

// Enters the priority of the current entry. True when the scan was repositioned.
bool enter_priority(DueScan* scan, int16 priority) {
  end_walk(scan);
  OrderKey first = entry_key(scan);
  scan->walk = {priority, first, first, false, 0, wall_now(), false};
  if (scan->checked == priority) return false;
  forget_if_empty(scan);
  FoundLowWater found = find_low_water_mark(scan->low_water, priority);
  scan->walk.can_reserve = has_common_view(scan) && !found.is_to_check;
  if (!precedes(first, found.key)) return false;
  if (found.is_to_check) {
    begin_check(scan, priority, found);
    if (!precedes(first, found.checked)) return false;
    jump(scan, priority, found.checked);
    return true;
  }
  walk_from(scan, priority, found);
  return true;
}

// Continues with the next priority that has a known low-water mark. False when no such priority
// follows.
bool enter_next_known(DueScan* scan) {
  end_walk(scan);
  forget_if_empty(scan);
  if (scan->next_known == scan->known_count) return false;
  int16 priority = scan->known[scan->next_known++];
  FoundLowWater found = find_low_water_mark(scan->low_water, priority);
  if (found.is_to_check) begin_check(scan, priority, found);
  // The first entry found enters the priority.
  if (found.is_to_check || found.expires == 0)
    jump(scan, priority, found.checked);
  else
    walk_from(scan, priority, found);
  return true;
}

// Ends the check below the low-water mark after its entries are used up; the scan continues at the
// low-water mark.
bool end_check(DueScan* scan) {
  if (scan->left_to_check == 0) return false;
  OrderKey at = entry_key(scan);
  if (!precedes(at, scan->check_end)) {
    scan->left_to_check = 0;
    return false;
  }
  scan->has_checked = true;
  if (--scan->left_to_check > 0) return false;
  auto priority = static_cast<int16>(scan->walk.priority);
  bool is_left = scan->walk.is_left;
  TimestampTz expires = scan->walk.started;
  if (is_left)
    end_walk(scan);
  else
    expires = record_checked(scan->low_water, priority, at, scan->walk.started);
  walk_from(scan, priority, {false, scan->check_end, scan->check_end, expires});
  // The next claim begins at the job left below the low-water mark.
  scan->walk.is_left = is_left;
  if (is_left) scan->walk.can_reserve = false;
  return true;
}

// Continues after this priority. False when no priority follows.
bool skip_priority(DueScan* scan, int16 priority) {
  end_walk(scan);
  scan->left_to_check = 0;
  bool is_followed = scan->next_known < scan->known_count;
  if (is_followed && scan->known[scan->next_known] == priority + 1) return enter_next_known(scan);
  rescan_priorities(scan, BTGreaterStrategyNumber, F_INT2GT, priority, last_priority(scan));
  return true;
}

// The current entry belongs to no ready job.
void pass_entry(DueScan* scan) {
  if (scan->walk.is_left || !scan->low_water.bucket) return;
  OrderKey key = entry_key(scan);
  scan->walk.begin = {key.run_at, key.id + 1};
}

// Moves to the next entry whose row is visible.
bool next_visible_row(DueScan* scan) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (!index_getnext_tid(scan->scan, ForwardScanDirection)) {
      if (!enter_next_known(scan)) return false;
      continue;
    }
    if (scan->low_water.bucket) {
      auto priority = DatumGetInt16(entry_column(scan, 1));
      if (priority != scan->walk.priority && enter_priority(scan, priority)) continue;
      if (end_check(scan)) continue;
    }
    if (index_fetch_heap(scan->scan, scan->row)) return true;
    pass_entry(scan);
  }
}

// --- rows ---------------------------------------------------------------------------------------

// Whether no claim took the job in time. The next sweep ends the job, so no claim considers it
// again.
bool is_expired(const DueScan* scan) {
  return has_start_by(scan->row) &&
         DatumGetTimestampTz(value_of(scan->row, kJobStartBy)) < scan->now;
}

// A released job keeps its order key. So the walk may have passed a dead entry of an earlier
// version before the entry of this row.
void step_back_to_row(DueScan* scan) {
  OrderKey key = {scan->run_at, scan->id};
  if (precedes(key, scan->walk.begin)) scan->walk.begin = key;
}

bool find_due_row(DueScan* scan) {
  while (next_visible_row(scan)) {
    if (!read_ordered_row(scan) || is_expired(scan)) {
      pass_entry(scan);
      continue;
    }
    if (is_row_due(scan)) {
      step_back_to_row(scan);
      return true;
    }
    // Every later entry of this priority is due later still.
    leave_row(scan);
    if (!skip_priority(scan, scan->priority)) return false;
  }
  return false;
}

}  // namespace

bool first_due(DueScan* scan) {
  begin_ordered_scan(scan);
  scan->scan->xs_want_itup = scan->low_water.bucket != nullptr;
  scan->walk.priority = kNoPriority;
  scan->checked = kNoPriority;
  scan->known_count = low_water_priorities(scan->low_water, scan->known);
  scan->low_water.sharers *= Max(scan->known_count, 1);
  if (scan->known_count > 0 && scan->known[0] == PG_INT16_MIN) {
    enter_next_known(scan);
  } else {
    rescan_priorities(scan, BTGreaterEqualStrategyNumber, F_INT2GE, PG_INT16_MIN,
                      last_priority(scan));
  }
  return find_due_row(scan);
}

bool next_due(DueScan* scan) {
  [[maybe_unused]] const ScanKeyData* last = &scan->keys[scan->prefix];
  Assert(!(last->sk_flags & SK_ROW_HEADER) ||
         DatumGetPointer(last->sk_argument) == reinterpret_cast<char*>(scan->key_parts));
  if (scan->left_to_check > 0) note_passed(scan->low_water.bit, scan->run_at);
  // The key comes from the row, so pass_entry() need not read the entry.
  if (!scan->walk.is_left) scan->walk.begin = {scan->run_at, scan->id + 1};
  return find_due_row(scan);
}

bool catch_up(DueScan* scan, bool* due) {
  // Requires a walk that has seen every entry since the low-water mark where the walk began.
  if (!scan->walk.can_reserve) return false;
  FoundLowWater found = current_low_water_mark(scan->low_water, scan->priority);
  if (!precedes({scan->run_at, scan->id}, found.key)) return false;
  walk_from(scan, scan->priority, found);
  *due = find_due_row(scan);
  return true;
}

void begin_range(DueScan* scan) { scan->is_range_open = true; }

Reservation end_range(DueScan* scan) {
  if (scan->is_range_open) close_range(scan);
  return scan->range;
}

void leave_passed_row(DueScan* scan, int16 priority, OrderKey key) {
  // The walk may have moved to another priority.
  if (scan->walk.priority != priority) return;
  if (precedes(key, scan->walk.begin)) scan->walk.begin = key;
  scan->walk.is_left = true;
  scan->walk.can_reserve = false;
}

void leave_row(DueScan* scan) { leave_passed_row(scan, scan->priority, {scan->run_at, scan->id}); }

void end_due(DueScan* scan) {
  end_walk(scan);
  end_ordered_scan(scan);
}

}  // namespace pulse
