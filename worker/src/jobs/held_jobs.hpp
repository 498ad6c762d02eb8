// The jobs this process holds: everything it was handed and has not yet accounted for. What a
// heartbeat reports is read from here, so a job leaves only when its end was accepted or refused,
// or when the server has taken it back.
//
// It is also where a claim has its one end. Several sessions and parts of the worker may come to
// the same claim, but only the one to which end() says true reports anything. What has left
// without a report is remembered, because the server still counts it as held. Belongs to the loop's
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "jobs/job.hpp"
#include "loop/clock.hpp"

namespace pulse {

struct HeldJob {
  enum class State {
    prefetched,  // waits for a slot
    running,     // has a slot and a task
    ended,       // its outcome, or its release, is on the way to the server
    revoked,     // not ours any more; its task is being killed
  };

  Job job;
  std::int64_t worker_id = 0;
  TimePoint claimed_at{};  // when the claim was sent: before the server's clocks start
  State state = State::prefetched;
  TimePoint arrived_at{};    // when the answer to its claim had come
  std::size_t bytes = 0;     // of its long texts, until it has ended
  TimePoint limits_as_of{};  // when its limits were told anew: a lowered one counts from then on

  ClaimKey key() const { return job.key(); }
};

class HeldJobs final : public ReportedClaims {
 public:
  // Takes up a job as prefetched. Nothing if this very claim is held already.
  HeldJob* add(Job job, std::int64_t worker_id, TimePoint claimed_at);
  HeldJob* find(ClaimKey key);
  void move(HeldJob& job, HeldJob::State state);
  // Its task was told, and keeps what it needs; the bytes count until the job has ended.
  static void forget_texts(HeldJob& job);
  // Whether the caller is the one that reports the end of this claim: true once for each claim,
  // and never for one that is not held or not ours any more.
  bool end(ClaimKey key);
  void erase(ClaimKey key);
  // As erase(), for what the server goes on to count as held until it learns better by itself.
  void leave(ClaimKey key);
  bool has_left(ClaimKey key) const { return left_.count(key) > 0; }
  // The server has learnt it: this process has another worker id from now on.
  void forget_left() { left_.clear(); }

  // The claims of one worker id that a heartbeat reports, in order: all but the revoked ones.
  std::vector<ClaimKey> claims_of(std::int64_t worker_id) const override;
  std::vector<ClaimKey> in_state(HeldJob::State state) const;
  // Those that wait for a slot or run.
  std::vector<HeldJob*> unended();
  std::size_t count(HeldJob::State state) const { return counts_.at(index(state)); }
  bool empty() const { return jobs_.empty(); }
  // Of the long texts of all jobs that have not ended.
  std::size_t bytes() const { return bytes_; }
  // Earlier claims of the same job: the server has ended them, or it would not have given a newer.
  std::vector<ClaimKey> earlier_claims(ClaimKey claim) const;
  // The prefetched job that was handed over first, of those that may start: no task of an earlier
  // claim of the same job is left here.
  HeldJob* first_prefetched();

 private:
  bool may_start(const HeldJob& job) const;
  static std::size_t index(HeldJob::State state) { return static_cast<std::size_t>(state); }

  std::map<ClaimKey, HeldJob> jobs_;
  std::set<ClaimKey> left_;
  std::deque<ClaimKey> arrivals_;  // as handed over; those that are not prefetched any more linger
  std::array<std::size_t, 4> counts_{};
  std::size_t bytes_ = 0;
};

}  // namespace pulse
