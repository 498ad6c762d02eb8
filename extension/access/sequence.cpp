#include "access/sequence.hpp"

namespace pulse {
namespace {

// Tokens, worker ids, and the ids of jobs, flows and operations.
constexpr int kSequences = 5;

// The sequences from which this transaction took numbers.
Oid taken[kSequences];
int taken_count;

Buffer lock_page(Relation sequence) {
  Buffer buffer = ReadBuffer(sequence, 0);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  return buffer;
}

// The page has the end of the last record of its sequence. Of 32 commits a single commit waits for
// the disk.
void flush_sequence(Oid oid) {
  Relation sequence = try_relation_open(oid, AccessShareLock);
  if (!sequence) return;  // dropped by this transaction
  Buffer buffer = lock_page(sequence);
  XLogRecPtr end = PageGetLSN(BufferGetPage(buffer));
  UnlockReleaseBuffer(buffer);
  relation_close(sequence, AccessShareLock);
  XLogFlush(end);
}

void note_taken(Oid sequence) {
  for (int i = 0; i < taken_count; i++)
    if (taken[i] == sequence) return;
  // A transaction that drops the extension and creates it anew takes numbers from more sequences.
  if (taken_count == kSequences) flush_sequence(taken[--taken_count]);
  taken[taken_count++] = sequence;
}

}  // namespace

int64 take_number(Oid sequence) {
  note_taken(sequence);
  return nextval_internal(sequence, false);
}

int64 last_number(Oid oid) {
  Relation sequence = relation_open(oid, AccessShareLock);
  Buffer buffer = lock_page(sequence);
  Page page = BufferGetPage(buffer);
  Item row = PageGetItem(page, PageGetItemId(page, FirstOffsetNumber));
  auto* header = reinterpret_cast<HeapTupleHeader>(row);
  int64 last =
      reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(header) + header->t_hoff)
          ->last_value;
  UnlockReleaseBuffer(buffer);
  relation_close(sequence, AccessShareLock);
  return last;
}

void flush_numbers() {
  // With any other synchronous_commit, a commit waits for its own WAL, which follows the WAL of the
  // sequences.
  if (synchronous_commit != SYNCHRONOUS_COMMIT_OFF) return;
  for (int i = 0; i < taken_count; i++) flush_sequence(taken[i]);
}

void forget_numbers() { taken_count = 0; }

}  // namespace pulse
