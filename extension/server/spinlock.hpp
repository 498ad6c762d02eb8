// Spinlocks: the only file that takes and releases a spinlock. A backend holds one spinlock at a
// time, for microseconds, and beside it only reads and writes memory.
//
// A build with assertions remembers the spinlock that the process holds, and refuses beside it:
// - a second spinlock, and the release of a spinlock that the process does not hold: Assert;
// - in code of this extension, each allocation, report, advisory lock and lightweight lock that the
//   macros below name: Assert;
// - every error, of the server's code too: the critical section makes it a PANIC.
// Not refused: an allocation by the server's own code, on a server without assertions.
// In a release build the functions are SpinLockAcquire() and SpinLockRelease() and nothing more.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

#ifdef USE_ASSERT_CHECKING

// Notes the spinlock that the process is about to take, or has released.
void begin_spin(const slock_t* lock);
void end_spin(const slock_t* lock);

// Whether this process holds the spinlock. Only for Assert(): release builds lack the function.
bool holds_spin(const slock_t* lock);

// Fails in a process that holds a spinlock.
void assert_no_spin();

// A macro does not expand inside itself, so each macro calls the server's function of the name.
#define palloc(size) (::pulse::assert_no_spin(), palloc(size))
#define palloc0(size) (::pulse::assert_no_spin(), palloc0(size))
#define repalloc(area, size) (::pulse::assert_no_spin(), repalloc(area, size))
#define MemoryContextAlloc(context, size) \
  (::pulse::assert_no_spin(), MemoryContextAlloc(context, size))
#define MemoryContextAllocHuge(context, size) \
  (::pulse::assert_no_spin(), MemoryContextAllocHuge(context, size))
#define psprintf(...) (::pulse::assert_no_spin(), psprintf(__VA_ARGS__))
#define LockAcquire(tag, mode, session, no_wait) \
  (::pulse::assert_no_spin(), LockAcquire(tag, mode, session, no_wait))
#define LWLockAcquire(lock, mode) (::pulse::assert_no_spin(), LWLockAcquire(lock, mode))
#undef ereport
#define ereport(level, ...)                         \
  do {                                              \
    ::pulse::assert_no_spin();                      \
    ereport_domain(level, TEXTDOMAIN, __VA_ARGS__); \
  } while (0)

#endif

// Takes the spinlock, which guards fields for microseconds.
inline void lock_spin(slock_t* lock) {
#ifdef USE_ASSERT_CHECKING
  begin_spin(lock);
#endif
  SpinLockAcquire(lock);
}

// Releases the spinlock that lock_spin() took.
inline void unlock_spin(slock_t* lock) {
  SpinLockRelease(lock);
#ifdef USE_ASSERT_CHECKING
  end_spin(lock);
#endif
}

}  // namespace pulse
