#include "jobs/held_jobs.hpp"

namespace pulse {

HeldJob* HeldJobs::add(Job job, std::int64_t worker_id, TimePoint claimed_at) {
  const ClaimKey key = job.key();
  const auto [entry, is_new] = jobs_.try_emplace(key);
  if (!is_new) return nullptr;
  entry->second = HeldJob{std::move(job), worker_id, claimed_at, HeldJob::State::prefetched};
  ++counts_.at(index(HeldJob::State::prefetched));
  arrivals_.push_back(key);
  return &entry->second;
}

HeldJob* HeldJobs::find(ClaimKey key) {
  const auto entry = jobs_.find(key);
  return entry == jobs_.end() ? nullptr : &entry->second;
}

void HeldJobs::move(HeldJob& job, HeldJob::State state) {
  --counts_.at(index(job.state));
  job.state = state;
  ++counts_.at(index(state));
}

void HeldJobs::erase(ClaimKey key) {
  const auto entry = jobs_.find(key);
  if (entry == jobs_.end()) return;
  --counts_.at(index(entry->second.state));
  jobs_.erase(entry);
}

std::vector<ClaimKey> HeldJobs::claims_of(std::int64_t worker_id) const {
  std::vector<ClaimKey> keys;
  for (const auto& [key, job] : jobs_) {
    if (job.worker_id == worker_id && job.state != HeldJob::State::revoked) keys.push_back(key);
  }
  return keys;
}

std::vector<ClaimKey> HeldJobs::in_state(HeldJob::State state) const {
  std::vector<ClaimKey> keys;
  for (const auto& [key, job] : jobs_) {
    if (job.state == state) keys.push_back(key);
  }
  return keys;
}

HeldJob* HeldJobs::first_prefetched() {
  while (!arrivals_.empty()) {
    HeldJob* job = find(arrivals_.front());
    if (job != nullptr && job->state == HeldJob::State::prefetched) return job;
    arrivals_.pop_front();
  }
  return nullptr;
}

}  // namespace pulse
