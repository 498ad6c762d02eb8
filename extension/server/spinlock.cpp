#include "server/spinlock.hpp"

#ifdef USE_ASSERT_CHECKING

namespace pulse {
namespace {

const slock_t* held = nullptr;  // the spinlock that this process holds; null: none

}  // namespace

void begin_spin(const slock_t* lock) {
  assert_no_spin();
  START_CRIT_SECTION();
  held = lock;
}

void end_spin(const slock_t* lock) {
  Assert(held == lock);
  held = nullptr;
  END_CRIT_SECTION();
}

bool holds_spin(const slock_t* lock) { return held == lock; }

void assert_no_spin() { Assert(!held); }

}  // namespace pulse

#endif
