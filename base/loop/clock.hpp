// Clock: the time that deadlines use, behind an interface because tests move the time.
#pragma once

#include <chrono>

#include "base/loop/boot_clock.hpp"

namespace pulse {

using TimePoint = BootClock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return BootClock::now(); }
};

}  // namespace pulse
