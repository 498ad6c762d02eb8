#include "service/thread_pool.hpp"

#include "base/loop/signals_blocked.hpp"

namespace pulse::console {
namespace {

// A session that no request needs is closed after this time.
constexpr std::chrono::seconds kIdle(30);

}  // namespace

ThreadPool::ThreadPool(std::size_t threads, std::size_t max_waiting,
                       const MakeSession& make_session)
    : max_waiting_(max_waiting) {
  const SignalsBlocked blocked;
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back(
        [this, session = make_session()]() mutable { serve(std::move(session)); });
  }
}

void ThreadPool::stop() {
  std::deque<Work> dropped;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    dropped.swap(waiting_);
    while (!idle_.empty()) call_last_idle();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool ThreadPool::add(Work work) {
  const std::lock_guard lock(mutex_);
  if (is_ending_ || waiting_.size() >= free_ + max_waiting_) return false;
  waiting_.push_back(std::move(work));
  if (!idle_.empty()) call_last_idle();
  return true;
}

std::size_t ThreadPool::idle() {
  const std::lock_guard lock(mutex_);
  return idle_.size();
}

// The call is within the lock, because the called thread ends the life of the condition variable.
void ThreadPool::call_last_idle() {
  idle_.back()->is_called = true;
  idle_.back()->called.notify_one();
  idle_.pop_back();
}

bool ThreadPool::wait_for_work(std::unique_lock<std::mutex>& lock, LentSession& session) {
  ++free_;
  // A thread that became free meanwhile may have taken the request that this thread was called for.
  while (!is_ending_ && waiting_.empty()) {
    Idle self;
    idle_.push_back(&self);
    const auto is_called = [&self] { return self.is_called; };
    if (!self.called.wait_for(lock, kIdle, is_called)) {
      session.close();
      self.called.wait(lock, is_called);
    }
  }
  --free_;
  return !is_ending_;
}

void ThreadPool::serve(LentSession session) {
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock, session)) {
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work(session);
    lock.lock();
  }
}

}  // namespace pulse::console
