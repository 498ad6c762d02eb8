// Threads with a session each, and a queue of requests. The thread that became idle last takes the
// next request: its session has read the catalogue, and the sessions of idle threads can end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "service/lent_session.hpp"

namespace pulse::console {

class ThreadPool {
 public:
  using Work = std::function<void(LentSession& session)>;
  using MakeSession = std::function<LentSession()>;

  // At most `max_waiting` requests wait for a thread.
  ThreadPool(std::size_t threads, std::size_t max_waiting, const MakeSession& make_session);
  // Waits for all threads, however long that takes.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // False where the queue is full, or the pool has stopped.
  bool add(Work work);

  using Time = std::chrono::steady_clock::time_point;

  // Drops the waiting requests, and waits for the running requests: but after a second no longer
  // for requests that wait for a connection to the database, which have changed nothing yet, and
  // for any request no longer than a statement may take. `since`: when the wish to stop came.
  // Returns whether all threads have ended. A thread that has not ended still uses this object and
  // all that its request uses.
  bool stop(Time since = std::chrono::steady_clock::now());

  // The number of threads that wait for a request.
  std::size_t idle();

 private:
  // A thread that waits for a request.
  struct Idle {
    std::condition_variable called;
    bool is_called = false;
  };

  struct Thread {
    std::thread thread;
    std::shared_ptr<const std::atomic<bool>> opening;
    bool has_ended = false;  // guarded by mutex_
  };

  void serve(LentSession session, Thread& self);
  bool may_leave_all() const;
  void call_last_idle();
  bool wait_for_work(std::unique_lock<std::mutex>& lock, LentSession& session);

  const std::size_t max_waiting_;
  std::mutex mutex_;
  std::deque<Work> waiting_;
  // The thread that became idle last stands last. A called thread leaves the list.
  std::vector<Idle*> idle_;
  // Counts the idle threads, and the called threads that have not taken a request yet.
  std::size_t free_ = 0;
  bool is_ending_ = false;
  std::condition_variable thread_ended_;
  std::deque<Thread> threads_;
};

}  // namespace pulse::console
