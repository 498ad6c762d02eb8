#include "wake/marks.hpp"

namespace pulse {

void set_marks(DatabaseState* database, const Marks& marks) {
  for (int i = 0; marks.any && i < kMarkWords; i++)
    if (marks.words[i]) pg_atomic_fetch_or_u64(&database->marks[i], marks.words[i]);
}

void UnpromotedQueues::add(uint64 hash) {
  if (count < kMaxQueues) queue[count] = hash;
  if (count < kUnknown) count++;
}

void UnpromotedQueues::remove(uint64 hash) {
  for (int i = count < kUnknown ? count - 1 : -1; i >= 0; i--)
    if (queue[i] == hash) queue[i] = queue[--count];
}

void UnpromotedQueues::narrow(Marks* marks) const {
  if (count == kUnknown) return;
  memset(marks->words, 0, sizeof(uint64) * kQueueWords);
  for (int i = 0; i < count; i++) marks->add(slot_of_hash(queue[i]));
}

}  // namespace pulse
