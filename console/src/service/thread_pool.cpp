#include "service/thread_pool.hpp"

#include <algorithm>

#include "base/loop/signals_blocked.hpp"

namespace pulse::console {
namespace {

// A session that no request needs is closed after this time.
constexpr std::chrono::seconds kIdle(30);
// At a stop: a connection that comes at all comes within this time, mostly.
constexpr std::chrono::seconds kConnectPatience(1);
// The server ends each statement of a request after twenty seconds, unless the server hangs.
constexpr std::chrono::seconds kStatementPatience(25);
constexpr std::chrono::milliseconds kLeaveCheck(100);

}  // namespace

ThreadPool::ThreadPool(std::size_t threads, std::size_t max_waiting,
                       const MakeSession& make_session)
    : max_waiting_(max_waiting) {
  const SignalsBlocked blocked;
  for (std::size_t i = 0; i < threads; ++i) {
    LentSession session = make_session();
    Thread& self = threads_.emplace_back();
    self.opening = session.opening();
    self.thread = std::thread(
        [this, &self, session = std::move(session)]() mutable { serve(std::move(session), self); });
  }
}

ThreadPool::~ThreadPool() {
  stop();
  for (Thread& each : threads_) {
    if (each.thread.joinable()) each.thread.join();
  }
}

bool ThreadPool::stop(Time since) {
  std::deque<Work> dropped;
  std::unique_lock lock(mutex_);
  is_ending_ = true;
  dropped.swap(waiting_);
  while (!idle_.empty()) call_last_idle();
  const auto has_ended = [](const Thread& each) { return each.has_ended; };
  for (;;) {
    if (std::all_of(threads_.begin(), threads_.end(), has_ended)) break;
    const Time now = std::chrono::steady_clock::now();
    if (now >= since + kStatementPatience || (now >= since + kConnectPatience && may_leave_all()))
      return false;
    thread_ended_.wait_for(lock, kLeaveCheck);
  }
  lock.unlock();
  for (Thread& each : threads_) {
    if (each.thread.joinable()) each.thread.join();
  }
  return true;
}

bool ThreadPool::may_leave_all() const {
  return std::all_of(threads_.begin(), threads_.end(),
                     [](const Thread& each) { return each.has_ended || *each.opening; });
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

void ThreadPool::serve(LentSession session, Thread& self) {
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock, session)) {
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work(session);
    lock.lock();
  }
  self.has_ended = true;
  thread_ended_.notify_all();
}

}  // namespace pulse::console
