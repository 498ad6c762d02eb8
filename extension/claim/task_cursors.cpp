#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "claim/claim.hpp"
#include "claim/reserved_range.hpp"
#include "server/compat.hpp"
#include "server/shared_memory.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// At jobs of other claims, when this one has all that it asked for.
constexpr int kFewLooks = 16;

// A row that is known as the task's first, and not due yet, saves the way to it.
void add_stream(Claim* claim, Datum identifier, int* capacity, TupleTableSlot* first) {
  if (claim->stream_count == *capacity) {
    *capacity *= 2;
    claim->streams = static_cast<Stream**>(repalloc(claim->streams, sizeof(Stream*) * *capacity));
  }
  // On its own: an index scan keeps the address of a key, so no stream may move.
  auto* stream = static_cast<Stream*>(palloc0(sizeof(Stream)));
  claim->streams[claim->stream_count++] = stream;
  text* name = DatumGetTextPP(identifier);
  stream->identifier = identifier;
  stream->bit = task_bit(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
  stream->scan.relation = claim->table.relation;
  stream->scan.index = claim->index;
  stream->scan.snapshot = claim->table.snapshot;
  stream->scan.now = claim->now;
  stream->scan.state = catalog()->state_ready;
  stream->scan.heads = {claim->heads ? claim->heads + stream->bit : nullptr, stream->bit,
                        head_task(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name)),
                        claim->head_generation[stream->bit], own_ready_from(stream->bit)};
  fix_text(&stream->scan, identifier);
  bool isnull;
  TimestampTz run_at = first ? DatumGetTimestampTz(slot_getattr(first, kJobRunAt, &isnull)) : 0;
  stream->due = first && run_at > claim->now
                    ? first_due_beyond(&stream->scan, int2_of(first, kJobPriority), run_at)
                    : first_due(&stream->scan);
}

// Every task with ready jobs, by a skip scan over the index's first column.
void add_every_task(Claim* claim, int* capacity) {
  TupleTableSlot* row = table_slot_create(claim->table.relation, nullptr);
  IndexScanDesc scan =
      begin_index_scan(claim->table.relation, claim->index, claim->table.snapshot, 1);
  scan->xs_want_itup = true;
  // Any entry names its task: to step over those that are known as dead is to read all their pages.
  scan->ignore_killed_tuples = false;
  Datum last = PointerGetDatum(cstring_to_text(""));
  for (;;) {
    ScanKeyData key;
    init_text_key(&key, 1, BTGreaterStrategyNumber, F_TEXT_GT, last);
    index_rescan(scan, &key, 1, nullptr, 0);
    if (!index_getnext_tid(scan, ForwardScanDirection)) break;
    bool isnull;
    // From the entry: millions of those behind it may be dead.
    last = PointerGetDatum(
        DatumGetTextPCopy(index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &isnull)));
    add_stream(claim, last, capacity, index_fetch_heap(scan, row) ? row : nullptr);
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
}

}  // namespace

void open_streams(Claim* claim) {
  int capacity = Max(4, claim->claimer.task_count);
  claim->streams = static_cast<Stream**>(palloc(sizeof(Stream*) * capacity));
  claim->stream_count = 0;
  if (claim->claimer.task_count == kEveryTask)
    add_every_task(claim, &capacity);
  else
    for (int i = 0; i < claim->claimer.task_count; i++)
      add_stream(claim, claim->claimer.tasks[i], &capacity, nullptr);
}

Stream* best_stream(Claim* claim) {
  Stream* best = nullptr;
  for (int i = 0; i < claim->stream_count; i++) {
    Stream* stream = claim->streams[i];
    if (stream->due && (!best || sorts_before(&stream->scan, &best->scan))) best = stream;
  }
  return best;
}

namespace {

// Whether the stream has a job that this claim leaves to others, as far as a short look tells.
bool has_more(Claim* claim, Stream* stream) {
  if (claim->claimed < claim->max_jobs) return false;
  for (int i = 0; i < kFewLooks && stream->due; i++)
    if (!go_past_others(claim, stream)) return true;
  return stream->due;
}

}  // namespace

void close_streams(Claim* claim) {
  DatabaseState* database = this_database();
  uint64 lowered = 0;
  for (int i = 0; i < claim->stream_count; i++) {
    Stream* stream = claim->streams[i];
    if (stream->scan.next_due && database &&
        lower_due(&database->next_due[stream->bit], stream->scan.next_due))
      lowered |= UINT64CONST(1) << stream->bit;
    if (has_more(claim, stream)) note_more(stream->bit);
    if (stream->due) leave_row(&stream->scan);
    end_due(&stream->scan);
  }
  if (lowered) nudge_timekeepers(lowered);
}

}  // namespace pulse
