#include "ended_sessions.hpp"

namespace pulse {
namespace {

const TimedEnd* find_timed(const EndedSessions* ended, uint64 attachment) {
  uint64 kept = Min(ended->timed_count, kTimedEnds);
  for (uint64 i = 0; i < kept; i++)
    if (ended->timed[i].attachment == attachment) return &ended->timed[i];
  return nullptr;
}

bool is_excused(const EndedSessions* ended, uint64 attachment) {
  uint64 kept = Min(ended->excused_count, kExcusedEnds);
  for (uint64 i = 0; i < kept; i++)
    if (ended->excused[i] == attachment) return true;
  return false;
}

bool is_by_client(const EndedSessions* ended, uint64 attachment) {
  if (find_timed(ended, attachment)) return true;
  bool has_lost_excused = ended->excused_count > kExcusedEnds;
  bool has_lost_timed = ended->timed_count > kTimedEnds;
  return has_lost_timed && !has_lost_excused && !is_excused(ended, attachment);
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

bool is_ended_by_client(EndedSessions* ended, uint64 attachment) {
  SpinLockAcquire(&ended->lock);
  bool is = is_by_client(ended, attachment);
  SpinLockRelease(&ended->lock);
  return is;
}

bool find_end(EndedSessions* ended, uint64 attachment, TimedEnd* end) {
  SpinLockAcquire(&ended->lock);
  const TimedEnd* found = find_timed(ended, attachment);
  if (found) *end = *found;
  SpinLockRelease(&ended->lock);
  return found != nullptr;
}

}  // namespace pulse
