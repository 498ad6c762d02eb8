#include "limit/queue_lock.hpp"

#include "server/compat.hpp"
#include "server/values.hpp"
#include "shared/queue_name.hpp"

namespace pulse {

QueueLock find_queue_lock(const text* name) {
  LevelNames levels = level_names(name);
  for (int i = 0; i < levels.count; i++) {
    uint64 level = fnv1a(VARDATA_ANY(name), levels.length[i]);
    VirtualTransactionId holder = conflicting_holder(LockKind::kLevel, level, ShareLock);
    if (VirtualTransactionIdIsValid(holder)) return {levels.length[i], holder};
  }
  VirtualTransactionId holder = conflicting_holder(LockKind::kQueue, fnv1a(name), ShareLock);
  bool is_locked = VirtualTransactionIdIsValid(holder);
  return {is_locked ? levels.length[levels.count - 1] : 0, holder};
}

}  // namespace pulse

// pulse_internal.lock_queue(queue_name): waits for the lock of the queue and the lock of the level
// with the same name. The mode of the level's lock conflicts with every promotion. The settings of
// the members of a level belong to the level: 'mail/*' to 'mail'.
PULSE_FUNCTION(pulse_lock_queue) {
  text* name = PG_GETARG_TEXT_PP(0);
  const char* data = VARDATA_ANY(name);
  int length = static_cast<int>(VARSIZE_ANY_EXHDR(name));
  if (length > 2 && memcmp(data + length - 2, "/*", 2) == 0) length -= 2;
  using pulse::LockKind;
  pulse::advisory_lock(LockKind::kQueue, pulse::fnv1a(name), ExclusiveLock);
  pulse::advisory_lock(LockKind::kLevel, pulse::fnv1a(data, length), AccessExclusiveLock);
  PG_RETURN_BOOL(true);
}

// pulse_internal.try_lock_level(level)
PULSE_FUNCTION(pulse_try_lock_level) {
  uint64 level = pulse::fnv1a(PG_GETARG_TEXT_PP(0));
  PG_RETURN_BOOL(pulse::try_advisory_lock(pulse::LockKind::kLevel, level, ExclusiveLock));
}

// pulse_internal.is_queue_locked(queue_name)
PULSE_FUNCTION(pulse_is_queue_locked) {
  PG_RETURN_BOOL(pulse::is_queue_locked(PG_GETARG_TEXT_PP(0)));
}

// pulse_internal.queue_lock(queue_name): the level and the holder of find_queue_lock(); NULL: no
// lock is held.
PULSE_FUNCTION(pulse_queue_lock) {
  text* name = PG_GETARG_TEXT_PP(0);
  pulse::QueueLock lock = pulse::find_queue_lock(name);
  if (lock.length == 0) PG_RETURN_NULL();
  char* holder =
      psprintf("%d/%u", pulse::number_in_lists(lock.holder), lock.holder.localTransactionId);
  Datum level = PointerGetDatum(cstring_to_text_with_len(VARDATA_ANY(name), lock.length));
  PG_RETURN_DATUM(
      pulse::result_row(fcinfo, {pulse::given(level), pulse::given(CStringGetTextDatum(holder))}));
}
