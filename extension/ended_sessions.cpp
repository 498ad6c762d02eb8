#include "ended_sessions.hpp"

namespace pulse {
namespace {

// Attachments of one installation share the upper half and are counted in the lower one.
bool is_before(uint64 attachment, uint64 other) {
  return attachment >> 32 == other >> 32 && attachment < other;
}

bool is_excused_locked(const EndedSessions* ended, uint64 attachment) {
  int kept = static_cast<int>(Min(ended->excused_count, kExcusedEnds));
  bool was_seen_older = ended->excused_count <= kExcusedEnds;
  for (int i = 0; i < kept; i++) {
    if (ended->excused[i] == attachment) return true;
    if (!is_before(attachment, ended->excused[i])) was_seen_older = true;
  }
  return !was_seen_older;
}

}  // namespace

void forget_ended_sessions(EndedSessions* ended) {
  SpinLockAcquire(&ended->lock);
  ended->excused_count = 0;
  ended->timed_count = 0;
  SpinLockRelease(&ended->lock);
}

void note_excused(EndedSessions* ended, uint64 attachment) {
  SpinLockAcquire(&ended->lock);
  ended->excused[ended->excused_count++ % kExcusedEnds] = attachment;
  SpinLockRelease(&ended->lock);
}

void note_ended(EndedSessions* ended, const TimedEnd& end) {
  SpinLockAcquire(&ended->lock);
  ended->timed[ended->timed_count++ % kTimedEnds] = end;
  SpinLockRelease(&ended->lock);
}

bool is_excused(EndedSessions* ended, uint64 attachment) {
  SpinLockAcquire(&ended->lock);
  bool is = is_excused_locked(ended, attachment);
  SpinLockRelease(&ended->lock);
  return is;
}

bool find_end(EndedSessions* ended, uint64 attachment, TimedEnd* end) {
  bool found = false;
  SpinLockAcquire(&ended->lock);
  int kept = static_cast<int>(Min(ended->timed_count, kTimedEnds));
  for (int i = 0; i < kept && !found; i++) {
    if (ended->timed[i].attachment != attachment) continue;
    *end = ended->timed[i];
    found = true;
  }
  SpinLockRelease(&ended->lock);
  return found;
}

}  // namespace pulse
