#include "queue/strict.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "server/clocks.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {

int turn_of(TupleTableSlot* row) {
  NullableDatum turn = field_of(row, kJobQueueTurn);
  return turn.isnull ? kNoTurn : DatumGetInt16(turn.value);
}

bool is_paused_by_end(Datum queue_name, Snapshot snapshot) {
  bool is_paused = false;
  Relation table = table_open(catalog()->queue_pause, AccessShareLock);
  with_row_of_text(table, catalog()->queue_pause_key, queue_name, snapshot,
                   [&is_paused](TupleTableSlot*) { is_paused = true; });
  table_close(table, AccessShareLock);
  return is_paused;
}

bool find_turn(IndexLookup* turns, const Queue& queue, Relation job, Snapshot snapshot) {
  open_index_lookup(turns, job, catalog()->job_turn_idx, snapshot, 1);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, queue.name);
  seek_keys(turns, &key);
  return next_row(turns);
}

bool may_open_turn(const Queue& queue, TupleTableSlot* row) {
  TimestampTz run_at = DatumGetTimestampTz(value_of(row, kJobRunAt));
  if (run_at > wall_now()) {
    note_parked_due(run_at);
    return false;
  }
  if (queue.taken != queue.concurrency) return queue.taken < queue.concurrency;
  return queue.open_count > 0 && turn_of(row) < queue.open[queue.open_count - 1].turn;
}

}  // namespace pulse
