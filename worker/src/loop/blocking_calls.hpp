// Runs what blocks on threads of its own. One thread stays for the next call, so that a worker
// whose user may start no more threads, for a task has taken them all, can still reconnect.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>

namespace pulse {

class BlockingCalls {
 public:
  // At most so many at once: a call may take as long as it likes, and holds its thread.
  explicit BlockingCalls(int max_threads) : state_(std::make_shared<State>(max_threads)) {}
  // Waits for nothing: what runs ends by itself, and its thread with it.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // Zero when the call was given to a thread. Else it does not run: device_or_resource_busy when
  // there are too many, or what the system says that starts no thread.
  std::error_code run(std::function<void()> call);

 private:
  // Shared with the threads, which may outlive it.
  struct State {
    explicit State(int limit) : max_threads(limit) {}
    const int max_threads;
    std::mutex mutex;
    std::condition_variable changed;
    int threads = 0;
    bool has_spare = false;      // a thread waits for the next call
    std::function<void()> next;  // for the spare thread, which is none any more
    bool is_closed = false;
  };

  static void run_thread(State& state, std::function<void()> call);
  static std::function<void()> await_next(State& state);

  const std::shared_ptr<State> state_;
};

}  // namespace pulse
