#include "base/loop/boot_clock.hpp"

#include <ctime>

namespace pulse {

BootClock::time_point BootClock::now() noexcept {
  timespec since_boot{};
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return time_point(std::chrono::seconds(since_boot.tv_sec) +
                    std::chrono::nanoseconds(since_boot.tv_nsec));
}

}  // namespace pulse
