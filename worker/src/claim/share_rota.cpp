#include "claim/share_rota.hpp"

#include <algorithm>

namespace pulse {
namespace {

std::vector<const TaskShare*> free_of(const std::vector<TaskShare>& shares) {
  std::vector<const TaskShare*> free;
  for (const TaskShare& share : shares) {
    if (share.free > 0) free.push_back(&share);
  }
  return free;
}

Demand demand_of(std::size_t jobs) {
  return {.start_jobs = jobs, .max_jobs = jobs, .is_awaited = true};
}

}  // namespace

ShareRota::Terms ShareRota::next(const Demand& whole, const std::vector<TaskShare>& shares) const {
  if (shares.size() < 2 || whole.max_jobs == 0) return {whole, std::nullopt};
  const std::vector<const TaskShare*> free = free_of(shares);
  if (free.empty()) return {{}, std::nullopt};
  if (next_ > 0 && next_ <= free.size()) {
    const TaskShare& share = *free[next_ - 1];
    return {demand_of(std::min(share.free, whole.max_jobs)), share.tasks, false};
  }
  Terms terms{demand_of(whole.max_jobs), std::vector<std::string>(), true, free.size()};
  for (const TaskShare* share : free) {
    terms.tasks->insert(terms.tasks->end(), share->tasks.begin(), share->tasks.end());
    terms.demand = demand_of(std::min(terms.demand.max_jobs, share->free));
  }
  std::sort(terms.tasks->begin(), terms.tasks->end());
  return terms;
}

// Fewer jobs than a claim for all has asked for: nothing else is ready.
void ShareRota::take_answer(const Terms& asked, std::size_t jobs) {
  if (!asked.is_for_all) {
    ++next_;
  } else {
    next_ = jobs < asked.demand.max_jobs ? 0 : 1;
    asked_for_ = asked.shares;
  }
}

bool ShareRota::has_more(const std::vector<TaskShare>& shares) const {
  return shares.size() > 1 && free_of(shares).size() > asked_for_;
}

}  // namespace pulse
