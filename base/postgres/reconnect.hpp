// When to connect again: at once after a loss, then after a random part of a growing delay, so that
// a thousand workers do not come back in the same second.
#pragma once

#include <functional>

#include "base/loop/duration.hpp"

namespace pulse {

// A number from 0 up to, not including, 1.
using Random = std::function<double()>;

// One engine for all copies: connections that drew the same delays would come back together.
Random random_source();

// The cap until the server has said the heartbeat interval.
inline constexpr Duration kFirstReconnectCap = std::chrono::seconds(5);

class Reconnect {
 public:
  explicit Reconnect(Random random, Duration cap = kFirstReconnectCap)
      : random_(std::move(random)), cap_(cap) {}

  // The delay before the next attempt, after a connection that lived this long (zero: the
  // connection never came up). None for the first, then uniform between zero and a bound that
  // doubles from 100 ms to the cap. A connection that lived for a second ends the series. A
  // connection that is killed at once does not: a server that kills every session would be called
  // without a pause.
  Duration next_delay(Duration lived);

  // Ends the series.
  void succeeded() { failures_ = 0; }

  // The heartbeat interval, once the server has said it.
  void set_cap(Duration cap) { cap_ = cap; }

 private:
  Random random_;
  Duration cap_;
  int failures_ = 0;
};

}  // namespace pulse
