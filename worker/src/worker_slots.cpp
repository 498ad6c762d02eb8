// The slots of a worker whose tasks wait in queues: how many there are, and which tasks share them.
#include <algorithm>

#include "worker.hpp"

namespace pulse {
namespace {

bool has(const std::vector<std::string>& tasks, const std::string& task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

}  // namespace

void Worker::set_queue(TaskQueue& queue) {
  queue_ = &queue;
  queue.has_free_slot = [this] {
    return executor_.slots_taken() < static_cast<std::size_t>(config_.concurrency);
  };
  queue.on_more_extra = [this] { claimer_.reconsider(); };
  queue.slot_awaited_since = [this] { return executor_.slot_awaited_since(); };
  executor_.set_queue(&queue);
  claimer_.slots_in_use = [this, &queue] {
    return executor_.slots_taken() + queue.waiting() + queue.own_slots_in_use();
  };
  claimer_.extra_jobs = [&queue] { return queue.extra(); };
  claimer_.slots = [this, &queue] {
    const bool has_others = !queue.has_own_slots() || !other_tasks_.empty();
    return queue.own_slots() + (has_others ? static_cast<std::size_t>(config_.concurrency) : 0);
  };
  claimer_.shares = [this] { return shares(); };
  let_jobs_go_back();
}

std::vector<TaskShare> Worker::shares() const {
  std::vector<TaskShare> shares = queue_->shares();
  if (shares.empty() || other_tasks_.empty()) return shares;
  const auto slots = static_cast<std::size_t>(config_.concurrency);
  const std::size_t taken = executor_.slots_taken() + held_.count(HeldJob::State::prefetched);
  shares.push_back({other_tasks_, slots - std::min(slots, taken)});
  return shares;
}

// The tasks without slots of their own.
void Worker::note_other_tasks(const std::vector<std::string>& tasks) {
  other_tasks_ = tasks;
  if (queue_ == nullptr) return;
  for (const TaskShare& share : queue_->shares()) {
    std::erase_if(other_tasks_, [&](const std::string& task) {
      return has(share.tasks, task) && !has(functions_, task);
    });
  }
}

}  // namespace pulse
