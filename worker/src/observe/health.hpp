// Health: the loop's state for other threads: the loop writes it at the end of each iteration, and
// never waits for a reader.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/loop/clock.hpp"
#include "base/loop/duration.hpp"

namespace pulse {

struct WorkerState {
  std::string database;         // the name; empty where the database has none
  bool is_established = false;  // registered, and attached where attaching is possible
  bool is_draining = false;     // or stopping, or stopped
  std::int64_t worker_id = 0;   // 0: not registered
  TimePoint last_good{};        // when the last beat was sent that the server answered well
  // For this long after `last_good` a claim is certainly this worker's.
  Duration silence_limit{};
  std::int64_t running = 0;
  std::int64_t prefetched = 0;
  std::int64_t held = 0;  // running, prefetched, and ended without an answer yet
  std::int64_t concurrency = 0;
  // With several databases: the state of each, beside this of all.
  std::vector<WorkerState> databases;
  std::string program_refusal;  // why new code of a program does not run; empty: it does
};

class Health {
 public:
  struct Seen {
    WorkerState state;
    TimePoint last_iteration{};
  };

  // The start counts as an iteration.
  explicit Health(TimePoint now) : seen_{{}, now} {}

  // From the loop's thread. While a reader has the lock, the state is left to the next iteration.
  void publish(const WorkerState& state, TimePoint now);
  Seen read() const;

 private:
  mutable std::mutex mutex_;
  Seen seen_;  // guarded by mutex_
};

// The loop iterates at least this often where the state is published.
constexpr Duration kIterationInterval = std::chrono::seconds(1);
// A loop without an iteration for this long is stuck.
constexpr Duration kMaxIteration = std::chrono::seconds(10);

// Why a worker is not ready, apart from the loop; empty if the worker is.
std::string why_not_ready(const WorkerState& state, TimePoint now);
// Why the process is not alive, or not ready to run jobs; empty if the process is. A process
// is ready while any of its databases can be served.
std::string why_not_alive(const Health::Seen& seen, TimePoint now);
std::string why_not_ready(const Health::Seen& seen, TimePoint now);

}  // namespace pulse
