// The slots of a worker whose tasks wait in queues: how many there are, and which tasks share them.
#include <algorithm>

#include "worker.hpp"

namespace pulse {
namespace {

bool has(const std::vector<std::string>& tasks, const std::string& task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

}  // namespace

Worker::~Worker() {
  if (pool_ != nullptr) pool_->leave(*this);
}

void Worker::set_queue(TaskQueue& queue) {
  wire_queue(&queue);
  queue.has_free_slot = [this] {
    return executor_.slots_taken() < static_cast<std::size_t>(config_.concurrency);
  };
  queue.on_more_extra = [this] { claimer_.reconsider(); };
  queue.slot_awaited_since = [this] { return executor_.slot_awaited_since(); };
}

void Worker::wire_queue(TaskQueue* queue) {
  queue_ = queue;
  executor_.set_queue(queue);
  claimer_.slots_in_use = [this] { return slots_in_use(); };
  if (queue == nullptr) return;
  claimer_.extra_jobs = [this] { return queue_->extra(); };
  claimer_.slots = [this] {
    return queue_->own_slots() +
           (uses_other_slots() ? static_cast<std::size_t>(config_.concurrency) : 0);
  };
  claimer_.shares = [this] { return shares(); };
  let_jobs_go_back();
}

void Worker::share_slots(SlotPool& pool, TaskQueue* queue) {
  pool_ = &pool;
  wire_queue(queue);
  pool.join(*this);
  executor_.share_pace(pool.pace());
  executor_.slots_taken_elsewhere = [this] { return pool_->beside(*this).slots_taken; };
  claimer_.elsewhere = [this] { return elsewhere(); };
  claimer_.bytes_taken = [this] { return pool_->bytes_taken(config_.max_held_bytes); };
  claimer_.part_of = [this](const Demand& whole) { return pool_->part_of(*this, whole); };
  claimer_.on_asking = [this](const ShareRota::Terms& terms) {
    pool_->promise(*this, terms.demand, terms.tasks);
  };
  claimer_.on_answered = [this](std::size_t jobs) { pool_->end_promise(*this, jobs); };
  claimer_.on_passed = [this] { pool_->pass(*this); };
}

// Whether any task takes slots that the queue does not have for itself.
bool Worker::uses_other_slots() const {
  return queue_ == nullptr || !queue_->has_own_slots() || !other_tasks_.empty();
}

std::size_t Worker::slots_in_use() const {
  std::size_t in_use = queue_ == nullptr ? 0 : queue_->waiting() + queue_->own_slots_in_use();
  if (pool_ == nullptr) return in_use + executor_.slots_taken();
  const SlotPool::Others others = pool_->beside(*this);
  if (uses_other_slots()) in_use += executor_.slots_taken() + others.waiting;
  return in_use + others.promised_starts;
}

Claimer::Elsewhere Worker::elsewhere() const {
  const SlotPool::Others others = pool_->beside(*this);
  return {others.slots_taken, (uses_other_slots() ? others.held : others.queued) + others.promised};
}

void Worker::take_free_slot() {
  if (queue_ != nullptr) queue_->slot_freed();
  pool_ != nullptr ? pool_->offer_soon() : executor_.fill_slots();
  claimer_.reconsider();
  advance();
}

// A job that may be another worker's already takes no slot before the next good beat.
std::size_t Worker::waiting() const {
  return heartbeat_.is_fresh() ? held_.count(HeldJob::State::prefetched) : 0;
}

std::size_t Worker::held() const {
  return held_.count(HeldJob::State::running) + held_.count(HeldJob::State::revoked) + waiting();
}

std::optional<TimePoint> Worker::slot_awaited_since() const {
  return heartbeat_.is_fresh() ? executor_.slot_awaited_since() : std::nullopt;
}

std::optional<TimePoint> Worker::first_arrival() const {
  return heartbeat_.is_fresh() ? executor_.first_arrival() : std::nullopt;
}

void Worker::end_exhausted() {
  if (phase_ == Phase::running) drain("no job of its tasks is ready");
}

std::vector<TaskShare> Worker::shares() const {
  std::vector<TaskShare> shares = queue_->shares();
  if (!shares.empty() && !other_tasks_.empty()) {
    const auto slots = static_cast<std::size_t>(config_.concurrency);
    const std::size_t taken = executor_.slots_taken() + held_.count(HeldJob::State::prefetched) +
                              (pool_ != nullptr ? pool_->beside(*this).waiting : 0);
    shares.push_back({other_tasks_, slots - std::min(slots, taken)});
  }
  if (pool_ == nullptr) return shares;
  for (TaskShare& share : shares) share.free = pool_->unpromised(*this, share);
  return shares;
}

// The slots of programs also change without a change of tasks.
void Worker::tell_info() {
  if (info) heartbeat_.set_info(info(slots(), phase_ != Phase::running));
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
