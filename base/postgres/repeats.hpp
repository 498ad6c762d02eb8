// Repeats: a lasting fault in the log. The log repeats the fault every half minute, because a
// silent log would be taken for a worker that hangs.
#pragma once

#include <string>

#include "base/log/log.hpp"
#include "base/loop/clock.hpp"

namespace pulse {

class Repeats {
 public:
  // The level for a fault that is met now: `first`, or debug where the same fault was logged a
  // moment ago.
  LogLevel level_of(const std::string& fault, TimePoint now, LogLevel first = LogLevel::warning) {
    if (fault == last_ && now < told_ + kAgain) return LogLevel::debug;
    last_ = fault;
    told_ = now;
    return first;
  }
  // The fault is over: the next fault is news.
  void forget() { last_.clear(); }

 private:
  static constexpr std::chrono::seconds kAgain{30};

  std::string last_;
  TimePoint told_{};
};

}  // namespace pulse
