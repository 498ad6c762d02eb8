// Heartbeats of many registered workers, each at its own moment of the interval, through a pool of
// sessions. A beat is due on its schedule, whether or not the one before it was answered.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "latencies.hpp"
#include "link.hpp"

namespace bench {

class Beats {
 public:
  // Who tells what its worker holds says "nothing", as workers do that run no job.
  Beats(Loop* loop, const Ids& workers, int sessions, Clock::duration interval, bool tells_jobs);
  void start();

  std::int64_t count() const { return count_; }
  std::int64_t refused() const { return refused_; }
  Latencies& latencies() { return latencies_; }  // from the scheduled moment to the answer

 private:
  void on_schedule();
  void beat(std::size_t worker, Moment scheduled);

  Loop* loop_;
  const Ids& workers_;
  std::vector<std::unique_ptr<Link>> links_;
  Clock::duration every_{};
  Moment next_{};
  std::size_t next_worker_ = 0;
  std::int64_t count_ = 0;
  std::int64_t refused_ = 0;
  Latencies latencies_;
};

}  // namespace bench
