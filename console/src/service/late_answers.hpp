// Answers to guesses: a client that shows an unknown token waits a second for the refusal.
// Invariants:
// - The server gives each answer once, in the order of the guesses, at the latest by stop().
// - No more than kMaxLate guesses wait, so guesses hold few of the server's connections.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pulse::console {

constexpr std::size_t kMaxLate = 64;

class LateAnswers {
 public:
  using Answer = std::function<void()>;

  explicit LateAnswers(std::chrono::milliseconds delay);
  ~LateAnswers() { stop(); }
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;

  // Gives the answer after the delay, on another thread. False: too many wait.
  bool add(Answer answer);
  // Gives all answers at once, and takes no more.
  void stop();

 private:
  struct Late {
    Answer answer;
    std::chrono::steady_clock::time_point due;
  };

  void answer_due();

  const std::chrono::milliseconds delay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Late> waiting_;  // guarded by mutex_; the first is due first
  bool is_ending_ = false;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace pulse::console
