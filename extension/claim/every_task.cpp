// Names of tasks, for a worker that serves every task. A claim reads a bounded number of names; the
// next claim of the session goes on after these names. A round is over when its claims have read
// all names.
#include "access/catalog.hpp"
#include "claim/claim.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

// Maximum number of names, and of priorities without a due job, that one claim reads.
constexpr int kMaxNames = 1000;
// Entries of a name that a claim passes before it seeks the next name.
constexpr int kMaxSteps = 16;

// A round of claims of this session, of which none has taken a job. After a claim that takes a job,
// the next claim begins a new round.
struct Round {
  Oid job;           // oid of the pulse.job whose names the round reads
  text* last;        // the next claim continues after this name; NULL: at the first name
  text* first;       // the round began after this name; NULL: at the first name
  bool has_wrapped;  // the round has continued at the first name
  WorkLeft left;     // the work that the round's claims left, apart from names
};
Round current;

// A scan over the first entries of names and of the priorities of each name, dead or alive.
struct NameScan {
  Claim* claim;
  IndexScanDesc scan;
  ScanKeyData parts[4];  // of the row comparison key; `scan` keeps the address of `parts`
  bool has_entry;
  int left;  // how many more names and priorities the claim reads
};

Datum column_of_entry(const NameScan* names, int column) {
  bool isnull;
  return index_getattr(names->scan->xs_itup, column, names->scan->xs_itupdesc, &isnull);
}

JobOrder entry_order(const NameScan* names) {
  return {DatumGetInt16(column_of_entry(names, 2)), DatumGetTimestampTz(column_of_entry(names, 3)),
          DatumGetInt64(column_of_entry(names, 4))};
}

int compare_entry(const NameScan* names, const text* name) {
  return DatumGetInt32(DirectFunctionCall2Coll(bttextcmp, C_COLLATION_OID,
                                               column_of_entry(names, 1), PointerGetDatum(name)));
}

bool is_at(const NameScan* names, const text* name) {
  return names->has_entry && compare_entry(names, name) == 0;
}

void step(NameScan* names) {
  names->has_entry = index_getnext_tid(names->scan, ForwardScanDirection) != nullptr;
}

// Goes to the first entry that compares with this name and order as `strategy` says.
void seek(NameScan* names, StrategyNumber strategy, const text* name, JobOrder order) {
  CHECK_FOR_INTERRUPTS();
  const Datum values[] = {PointerGetDatum(name), Int16GetDatum(order.priority),
                          TimestampTzGetDatum(order.run_at), Int64GetDatum(order.id)};
  ScanKeyData key;
  init_row_key(&key, names->parts, 1, strategy, values, lengthof(values));
  index_rescan(names->scan, &key, 1, nullptr, 0);
  step(names);
}

void seek_after(NameScan* names, const text* name, int16 priority) {
  seek(names, BTGreaterStrategyNumber, name, {priority, PG_INT64_MAX, PG_INT64_MAX});
}

void seek_first(NameScan* names) {
  seek(names, BTGreaterEqualStrategyNumber, cstring_to_text(""),
       {PG_INT16_MIN, PG_INT64_MIN, PG_INT64_MIN});
}

// Passes the entries for which is_same() holds, of this name up to this priority.
template <typename IsSame>
void pass(NameScan* names, const text* name, int16 priority, IsSame is_same) {
  for (int i = 0; i < kMaxSteps && is_same(); i++) step(names);
  if (is_same()) seek_after(names, name, priority);
}

// True when the name may have a due job, at which the scan then stands. Else the due time of the
// name's next job was recorded.
bool find_maybe_due(NameScan* names, const TaskCursor* cursor, const text* name) {
  Claim* claim = names->claim;
  while (is_at(names, name)) {
    names->left--;
    JobOrder order = entry_order(names);
    FoundLowWater found = find_low_water_mark(cursor->scan.low_water, order.priority, false);
    if (!found.is_to_check && precedes({order.run_at, order.id}, found.key)) {
      int16 priority = order.priority;
      seek(names, BTGreaterEqualStrategyNumber, name, {priority, found.key.run_at, found.key.id});
      if (!is_at(names, name)) return false;
      order = entry_order(names);
      if (order.priority != priority) continue;
    }
    if (order.run_at <= claim->stamp.now) return true;
    record_next_due(claim, cursor->bit, order.run_at);
    pass(names, name, order.priority,
         [&] { return is_at(names, name) && entry_order(names).priority == order.priority; });
  }
  return false;
}

// Reads the name of the current entry, and moves to the next name.
text* check_task_name(NameScan* names) {
  text* name = DatumGetTextPCopy(column_of_entry(names, 1));
  TaskCursor cursor;
  init_cursor(names->claim, &cursor, PointerGetDatum(name));
  if (find_maybe_due(names, &cursor, name)) add_candidate(names->claim, cursor, entry_order(names));
  pass(names, name, PG_INT16_MAX, [&] { return is_at(names, name); });
  return name;
}

void set_name(text** kept, const text* name) {
  if (*kept) pfree(*kept);
  *kept = nullptr;
  if (!name) return;
  *kept = static_cast<text*>(MemoryContextAlloc(TopMemoryContext, VARSIZE_ANY(name)));
  memcpy(*kept, name, VARSIZE_ANY(name));
}

void begin_round() {
  if (current.job != catalog()->job) set_name(&current.last, nullptr);
  current.job = catalog()->job;
  set_name(&current.first, current.last);
  current.has_wrapped = false;
  current.left = WorkLeft::kNone;
}

// True when the round has read every name. After the last name the round continues at the first
// name.
bool is_round_over(NameScan* names) {
  if (!names->has_entry && current.first && !current.has_wrapped) {
    current.has_wrapped = true;
    seek_first(names);
  }
  if (!names->has_entry) return true;
  return current.has_wrapped && compare_entry(names, current.first) > 0;
}

}  // namespace

void add_every_task(Claim* claim) {
  if (!claim->continues_round || current.job != catalog()->job) begin_round();
  NameScan names = {};
  names.claim = claim;
  names.left = kMaxNames;
  names.scan = begin_index_scan(claim->table.relation, claim->index, claim->table.snapshot, 1);
  names.scan->xs_want_itup = true;
  // Dead entries also name their task. A scan that skips entries known to be dead would read
  // all pages of these entries.
  names.scan->ignore_killed_tuples = false;
  if (current.last)
    seek_after(&names, current.last, PG_INT16_MAX);
  else
    seek_first(&names);
  text* last = current.last;
  while (!is_round_over(&names)) {
    if (names.left <= 0) {
      claim->leaves_names = true;
      break;
    }
    last = check_task_name(&names);
  }
  if (last != current.last) set_name(&current.last, last);
  if (!claim->leaves_names) set_name(&current.last, nullptr);
  index_endscan(names.scan);
}

WorkLeft left_of_round(const Claim* claim, WorkLeft left) {
  if (claim->worker.task_count != kEveryTask || claim->closed) return left;
  current.left = Max(current.left, left);
  if (!claim->leaves_names) return current.left;
  return claim->claimed > 0 ? WorkLeft::kNow : Max(left, WorkLeft::kUnseen);
}

}  // namespace pulse
