// Blocking calls: runs calls that block on separate threads. One thread stays for the next call, so
// that a worker can still reconnect when a task has taken all threads that the user may start.
//
// Invariants, under `State::mutex`:
// - `threads` counts the threads that run a call or wait for a call; never more than `max_threads`.
// - At most one thread is spare (`has_spare`). `next` is set only while that thread wakes up.
// - The state outlives the object in threads that still run.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>

namespace pulse {

class BlockingCalls {
 public:
  // At most `max_threads` calls at once: a call may take any time, and holds a thread.
  explicit BlockingCalls(int max_threads) : state_(std::make_shared<State>(max_threads)) {}
  // Waits for nothing: a running call ends by itself, and so does the thread.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // Zero when the call was given to a thread. Else the call does not run: device_or_resource_busy
  // when there are too many calls, or the system's reason for starting no thread.
  std::error_code run(std::function<void()> call);

 private:
  // Shared with the threads, which may outlive the object.
  struct State {
    explicit State(int limit) : max_threads(limit) {}
    const int max_threads;
    std::mutex mutex;
    std::condition_variable changed;
    int threads = 0;
    bool has_spare = false;      // a thread waits for the next call
    std::function<void()> next;  // For the spare thread, which is spare no more.
    bool is_closed = false;
  };

  static void run_thread(State& state, std::function<void()> call);
  static std::function<void()> await_next(State& state);

  const std::shared_ptr<State> state_;
};

}  // namespace pulse
