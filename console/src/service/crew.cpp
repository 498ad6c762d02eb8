#include "service/crew.hpp"

#include "loop/signals_blocked.hpp"

namespace pulse::console {
namespace {

// A session that no request needs is closed after this time.
constexpr std::chrono::seconds kIdle(30);

}  // namespace

Crew::Crew(std::size_t threads, std::size_t max_waiting, const MakeSession& make_session)
    : max_waiting_(max_waiting) {
  const SignalsBlocked blocked;
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, session = make_session()]() mutable { run(std::move(session)); });
  }
}

Crew::~Crew() {
  std::deque<Work> dropped;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Crew::add(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_ || waiting_.size() >= idle_ + max_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return true;
}

bool Crew::wait_for_work(std::unique_lock<std::mutex>& lock, LentSession& session) {
  const auto is_wanted = [this] { return is_ending_ || !waiting_.empty(); };
  ++idle_;
  if (!changed_.wait_for(lock, kIdle, is_wanted)) {
    session.close();
    changed_.wait(lock, is_wanted);
  }
  --idle_;
  return !is_ending_;
}

void Crew::run(LentSession session) {
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
