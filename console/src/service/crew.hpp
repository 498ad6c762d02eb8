// Threads with a session each, and the requests that wait for one of them. The thread that was busy
// last takes the next request: its session has read the catalogue, and those of others can end.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "service/lent_session.hpp"

namespace pulse::console {

class Crew {
 public:
  using Work = std::function<void(LentSession& session)>;
  using MakeSession = std::function<LentSession()>;

  // `max_waiting`: so many requests wait for a thread at most.
  Crew(std::size_t threads, std::size_t max_waiting, const MakeSession& make_session);
  ~Crew() { stop(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // False: as many wait as may, or it has stopped.
  bool add(Work work);

  // What waits is dropped; what runs is waited for.
  void stop();

  // How many threads wait for work.
  std::size_t idle();

 private:
  // A thread that waits for work.
  struct Idle {
    std::condition_variable called;
    bool is_called = false;
  };

  void run(LentSession session);
  void call_last_idle();
  bool wait_for_work(std::unique_lock<std::mutex>& lock, LentSession& session);

  const std::size_t max_waiting_;
  std::mutex mutex_;
  std::deque<Work> waiting_;
  // In the order in which they became it. A thread that is called leaves.
  std::vector<Idle*> idle_;
  // Idle ones, and those that are called and have not taken work yet.
  std::size_t free_ = 0;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pulse::console
