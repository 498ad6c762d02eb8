#include "claim/slot_pool.hpp"

#include <algorithm>
#include <utility>

namespace pulse {
namespace {

bool has_any(const std::vector<std::string>& tasks, const std::vector<std::string>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& task) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  });
}

}  // namespace

SlotPool::SlotPool(std::size_t slots, Timers& timers)
    : slots_(slots),
      timers_(timers),
      offering_(timers, [this] { offer(); }),
      pace_(timers, [this] { fill_slots(); }) {}

void SlotPool::set_queue(TaskQueue& queue) {
  queue_ = &queue;
  queue.has_free_slot = [this] {
    std::size_t taken = queue_->busy();
    for (const auto& entry : entries_) taken += entry->user->slots_taken();
    return taken < slots_;
  };
  queue.slot_awaited_since = [this] {
    std::optional<TimePoint> first;
    for (const auto& entry : entries_) {
      const auto since = entry->user->slot_awaited_since();
      if (since && (!first || *since < *first)) first = since;
    }
    return first;
  };
  queue.on_more_extra = [this] { offer_soon(); };
}

void SlotPool::join(SlotUser& user) {
  entries_.push_back(
      std::make_unique<Entry>(user, timers_, [this, &user] { take_lateness(user); }));
  entries_.back()->served = most_served_;
}

void SlotPool::leave(SlotUser& user) {
  std::erase_if(entries_, [&](const auto& entry) { return entry->user == &user; });
  offer_soon();
}

SlotPool::Entry& SlotPool::entry_of(const SlotUser& user) {
  return const_cast<Entry&>(std::as_const(*this).entry_of(user));
}

const SlotPool::Entry& SlotPool::entry_of(const SlotUser& user) const {
  return **std::find_if(entries_.begin(), entries_.end(),
                        [&](const auto& entry) { return entry->user == &user; });
}

SlotPool::Others SlotPool::beside(const SlotUser& user) const {
  Others others;
  for (const auto& entry : entries_) {
    if (entry->user == &user) continue;
    others.slots_taken += entry->user->slots_taken();
    others.queued += entry->user->queued();
    others.waiting += entry->user->waiting();
    others.held += entry->user->held();
    others.promised_starts += entry->promised.start_jobs;
    others.promised += entry->promised.max_jobs;
  }
  return others;
}

std::size_t SlotPool::unpromised(const SlotUser& user, const TaskShare& share) const {
  std::size_t promised = 0;
  for (const auto& entry : entries_) {
    const bool is_for_share = !entry->tasks || has_any(*entry->tasks, share.tasks);
    if (entry->user != &user && is_for_share) promised += entry->promised.max_jobs;
  }
  return share.free - std::min(share.free, promised);
}

std::size_t SlotPool::bytes_taken(std::size_t max_bytes) const {
  std::size_t held = 0;
  for (const auto& entry : entries_) held += entry->user->held_bytes();
  if (held >= max_bytes) return held;
  return max_bytes - (max_bytes - held) / std::max<std::size_t>(entries_.size(), 1);
}

std::size_t SlotPool::own_part() const {
  const std::size_t users = std::max<std::size_t>(entries_.size(), 1);
  return std::max<std::size_t>((slots_ + users - 1) / users, 1);
}

// Gives out `jobs` one by one, each to the database that was served least, and says how many `own`
// gets. The others get theirs when they ask, which they do at the end of this iteration.
std::size_t SlotPool::allotment(const Entry& own, std::size_t jobs) const {
  std::vector<const Entry*> wanting{&own};
  for (const auto& entry : entries_) {
    const bool is_asking = entry.get() != &own && entry->promised.max_jobs == 0 &&
                           !entry->has_passed && entry->user->wants_jobs();
    if (is_asking) wanting.push_back(entry.get());
  }
  std::stable_sort(wanting.begin(), wanting.end(), [](const Entry* one, const Entry* other) {
    return one->served < other->served;
  });
  // Up to `level` the first `sharers` databases are served alike; `jobs` are left.
  std::uint64_t level = wanting.front()->served;
  std::size_t sharers = 1;
  for (; sharers < wanting.size(); ++sharers) {
    const std::uint64_t step = (wanting[sharers]->served - level) * sharers;
    if (step >= jobs) break;
    jobs -= step;
    level = wanting[sharers]->served;
  }
  const auto place =
      static_cast<std::size_t>(std::find(wanting.begin(), wanting.end(), &own) - wanting.begin());
  if (place >= sharers) return 0;
  return (level - own.served) + jobs / sharers + (place < jobs % sharers ? 1 : 0);
}

Demand SlotPool::part_of(const SlotUser& user, const Demand& whole) const {
  if (entries_.size() < 2 || whole.max_jobs == 0) return whole;
  const Entry& own = entry_of(user);
  Demand part = whole;
  part.start_jobs = whole.start_jobs > 0 ? allotment(own, whole.start_jobs) : 0;
  if (own.is_late) part.start_jobs = std::min(part.start_jobs, own_part());
  const std::size_t ahead = whole.max_jobs - whole.start_jobs;
  std::size_t ahead_part = ahead > 0 && !own.is_late ? allotment(own, ahead) : 0;
  if (ahead_part > 0) ahead_part = std::min(ahead, std::max(ahead_part, kLeastAhead));
  part.max_jobs = part.start_jobs + ahead_part;
  return part;
}

void SlotPool::promise(SlotUser& user, const Demand& demand,
                       const std::optional<std::vector<std::string>>& tasks) {
  Entry& entry = entry_of(user);
  entry.promised = demand;
  entry.tasks = tasks;
  entry.deadline.start_in(kPromiseDeadline);
}

void SlotPool::end_promise(SlotUser& user, std::size_t jobs) {
  Entry& entry = entry_of(user);
  if (entry.deadline.is_running()) entry.is_late = false;
  entry.deadline.stop();
  entry.promised = {};
  entry.served += jobs;
  most_served_ = std::max(most_served_, entry.served);
  const std::uint64_t least = most_served_ - std::min(most_served_, kMaxLag);
  for (const auto& each : entries_) each->served = std::max(each->served, least);
  offer_soon();
}

void SlotPool::take_lateness(const SlotUser& user) {
  Entry& entry = entry_of(user);
  entry.promised = {};
  entry.is_late = true;
  offer_soon();
}

void SlotPool::pass(SlotUser& user) {
  Entry& entry = entry_of(user);
  if (std::exchange(entry.has_passed, true)) return;
  for (const auto& each : entries_) {
    if (each->user != &user) each->user->claim_or_wait();
  }
}

void SlotPool::offer() {
  for (const auto& entry : entries_) entry->has_passed = false;
  fill_slots();
  for (const auto& entry : entries_) entry->user->claim_or_wait();
}

// The job that has waited for longest comes first, of whatever database.
void SlotPool::fill_slots() {
  std::vector<std::pair<TimePoint, SlotUser*>> waiting;
  for (const auto& entry : entries_) {
    if (const auto since = entry->user->first_arrival()) waiting.emplace_back(*since, entry->user);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  for (const auto& [since, user] : waiting) user->fill_slots();
}

}  // namespace pulse
