#include "jobs/held_jobs.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace pulse {
namespace {

std::size_t length_of(const std::optional<std::string>& text) { return text ? text->size() : 0; }

}  // namespace

HeldJob* HeldJobs::add(Job job, std::int64_t worker_id, TimePoint claimed_at) {
  const ClaimKey key = job.key();
  const auto [entry, is_new] = jobs_.try_emplace(key);
  if (!is_new) return nullptr;
  entry->second = HeldJob{std::move(job), worker_id, claimed_at};
  entry->second.arrived_at = claimed_at;
  const TaskInput& input = entry->second.job.input;
  entry->second.bytes = length_of(input.payload_json) + length_of(input.checkpoint_json) +
                        length_of(input.parents_json) + length_of(input.last_error);
  bytes_ += entry->second.bytes;
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
  if (state != HeldJob::State::ended) return;
  forget_texts(job);
  bytes_ -= std::exchange(job.bytes, 0);
}

void HeldJobs::forget_texts(HeldJob& job) {
  TaskInput& input = job.job.input;
  for (auto* text :
       {&input.payload_json, &input.checkpoint_json, &input.parents_json, &input.last_error}) {
    text->reset();
  }
}

bool HeldJobs::end(ClaimKey key) {
  HeldJob* job = find(key);
  if (job == nullptr) return false;
  if (job->state == HeldJob::State::ended || job->state == HeldJob::State::revoked) return false;
  move(*job, HeldJob::State::ended);
  return true;
}

void HeldJobs::leave(ClaimKey key) {
  erase(key);
  left_.insert(key);
}

void HeldJobs::erase(ClaimKey key) {
  const auto entry = jobs_.find(key);
  if (entry == jobs_.end()) return;
  --counts_.at(index(entry->second.state));
  bytes_ -= entry->second.bytes;
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

std::vector<HeldJob*> HeldJobs::unended() {
  std::vector<HeldJob*> found;
  for (auto& [claim, job] : jobs_) {
    if (job.state <= HeldJob::State::running) found.push_back(&job);
  }
  return found;
}

std::vector<ClaimKey> HeldJobs::earlier_claims(ClaimKey claim) const {
  std::vector<ClaimKey> earlier;
  const ClaimKey first{claim.job_id, std::numeric_limits<std::int64_t>::min()};
  for (auto entry = jobs_.lower_bound(first); entry != jobs_.end() && entry->first < claim; ++entry)
    earlier.push_back(entry->first);
  return earlier;
}

bool HeldJobs::may_start(const HeldJob& job) const {
  const std::vector<ClaimKey> earlier = earlier_claims(job.key());
  return std::none_of(earlier.begin(), earlier.end(), [this](ClaimKey claim) {
    const HeldJob::State state = jobs_.at(claim).state;
    return state == HeldJob::State::running || state == HeldJob::State::revoked;
  });
}

HeldJob* HeldJobs::first_prefetched() {
  const auto waiting = [this](ClaimKey claim) {
    HeldJob* job = find(claim);
    return job != nullptr && job->state == HeldJob::State::prefetched ? job : nullptr;
  };
  while (!arrivals_.empty() && waiting(arrivals_.front()) == nullptr) arrivals_.pop_front();
  for (const ClaimKey claim : arrivals_) {
    HeldJob* job = waiting(claim);
    if (job != nullptr && may_start(*job)) return job;
  }
  return nullptr;
}

}  // namespace pulse
