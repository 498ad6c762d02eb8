#include "stretch.hpp"

#include "announced.hpp"
#include "commit_callback.hpp"

namespace pulse {
namespace {

// As many rows as are looked at before any is locked. What somebody faster has taken meanwhile was
// looked at for nothing; moving the head costs a spinlock.
constexpr int kMostRows = 64;

struct Rows {
  int count;
  int16 priority;
  ItemPointerData tid[kMostRows];
  HeadKey key[kMostRows];
};

// Puts the rows that come first into view. False when the row at hand is not for this claim.
bool view_rows(Claim* claim, Stream* stream, int most, Rows* rows) {
  DueScan* scan = &stream->scan;
  rows->count = 0;
  rows->priority = scan->priority;
  if (fit_of_row(claim, stream, 0) != Fit::kGood) return false;
  begin_stretch(scan);
  do {
    rows->tid[rows->count] = scan->slot->tts_tid;
    rows->key[rows->count++] = {scan->run_at, scan->id};
    // If this is undone, somebody is to look for them.
    note_claimed(stream->bit);
    if (rows->count == most) break;
    stream->due = next_due(scan);
  } while (stream->due && scan->priority == rows->priority && best_stream(claim) == stream &&
           fit_of_row(claim, stream, rows->count) == Fit::kGood);
  return true;
}

void take_rows(Claim* claim, Stream* stream, const Rows& rows) {
  bool is_given_back = false;
  for (int i = 0; i < rows.count; i++) {
    if (take_row(claim, stream, rows.tid[i]) || is_given_back) continue;
    give_back_row(&stream->scan, rows.priority, rows.key[i]);
    // Others went past it because of us, and whoever has it now need not tell them.
    note_more(stream->bit);
    is_given_back = true;
  }
}

// Whether another claim that is under way has the row at hand, and looks after it.
bool is_with_other_claim(Claim* claim, Stream* stream) {
  if (!stream->scan.heads.bucket) return false;
  if (!is_somebodys(stream->scan.slot, &claim->rival)) return false;
  if (claim->announcer != claim->rival) {
    claim->announcement = announcement_of(claim->rival);
    claim->announcer = claim->rival;
  }
  return ((claim->announcement.bits >> stream->bit) & 1) &&
         stream->scan.run_at >= claim->announcement.from;
}

}  // namespace

bool go_past_others(Claim* claim, Stream* stream) {
  if (catch_up(&stream->scan, &stream->due)) return true;
  if (!is_with_other_claim(claim, stream)) return false;
  stream->due = next_due(&stream->scan);
  return true;
}

void announce_walk(Stream* stream) {
  const DueScan& scan = stream->scan;
  if (!scan.heads.bucket) return;
  note_passed(stream->bit, scan.walk.start.run_at);
  announce_claim(stream->bit, scan.walk.start.run_at);
}

bool take_stretch(Claim* claim, Stream* stream) {
  DueScan* scan = &stream->scan;
  if (!scan->walk.may_advance) return false;
  TimestampTz from = scan->walk.start.run_at;
  int most = Min(kMostRows, claim->max_jobs - claim->claimed);
  Rows rows;
  if (!view_rows(claim, stream, most, &rows)) return false;
  bool is_full = rows.count == most;
  // Others who find nothing because of us should not have to wait for long.
  prepare_to_take(claim, stream);
  if (!end_stretch(scan, is_full, &stream->due)) return true;
  announce_claim(stream->bit, from);
  take_rows(claim, stream, rows);
  if (is_full) stream->due = next_due(scan);
  return true;
}

}  // namespace pulse
