// A watcher queries less often where its queries take the server long: they cost a two-hundredth of
// a core, as long as each takes less than 25 ms.
#pragma once

#include <chrono>

namespace pulse::console {

class Pace {
 public:
  explicit Pace(std::chrono::milliseconds interval) : interval_(interval) {}

  // The pause after a query that took the server `worked`: the interval, or up to five seconds
  // where the interval would cost more. The time of the first query does not count, because the
  // first query often fills the caches of its session.
  std::chrono::milliseconds pause_after(std::chrono::microseconds worked);

 private:
  std::chrono::milliseconds interval_;
  bool has_queried_ = false;
};

}  // namespace pulse::console
