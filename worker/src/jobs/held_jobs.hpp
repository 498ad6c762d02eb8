// Held jobs: every job that the server has handed to this process and that this process has not yet
// accounted for.
//
// Invariants (only the loop's thread reads and writes):
// - A heartbeat reports exactly the jobs here that are not revoked. A job leaves only when the
//   server has accepted or refused an end of it, or has taken it back.
// - A claim has one end. Several sessions and parts of the worker may come to the same claim, but
//   only the caller to which end() says true reports anything.
// - `left_` names the claims that have left without a report, because the server still counts their
//   jobs as held.
// - `counts_` and `bytes_` are the sums over `jobs_`; move(), add() and erase() keep both.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/loop/clock.hpp"
#include "jobs/job.hpp"

namespace pulse {

struct HeldJob {
  enum class State {
    prefetched,  // waits for a slot
    running,     // has a slot and a task
    ended,       // the outcome or the release is on the way to the server
    revoked,     // the claim is another worker's or over; the task is being killed
  };

  Job job;
  std::int64_t worker_id = 0;
  TimePoint claimed_at{};  // when the claim was sent: before the server's clocks start
  State state = State::prefetched;
  TimePoint arrived_at{};    // when the answer to the claim had come
  std::size_t bytes = 0;     // of the long texts, until the job has ended
  TimePoint limits_as_of{};  // when the server told new limits: a lowered limit counts from then on

  ClaimKey key() const { return job.key(); }
};

class HeldJobs final : public ReportedClaims {
 public:
  // Takes up a job as prefetched. Nothing if this very claim is held already.
  HeldJob* add(Job job, std::int64_t worker_id, TimePoint claimed_at);
  HeldJob* find(ClaimKey key);
  void move(HeldJob& job, HeldJob::State state);
  // The task has got the long texts and keeps copies where needed; the bytes count until the job
  // has ended.
  static void forget_texts(HeldJob& job);
  // Whether the caller is to report the end of this claim: true once for each claim, and never for
  // a claim that is not held or is revoked.
  bool end(ClaimKey key);
  void erase(ClaimKey key);
  // As erase(), for a claim that the server goes on to count as held until heartbeats no longer
  // name the job.
  void leave(ClaimKey key);
  bool has_left(ClaimKey key) const { return left_.count(key) > 0; }
  // The server has learnt the end of all left claims: this process has another worker id from now
  // on.
  void forget_left() { left_.clear(); }

  // The claims of one worker id that a heartbeat reports, in order: all but the revoked claims.
  std::vector<ClaimKey> claims_of(std::int64_t worker_id) const override;
  std::vector<ClaimKey> in_state(HeldJob::State state) const;
  // The jobs that wait for a slot or run.
  std::vector<HeldJob*> unended();
  std::size_t count(HeldJob::State state) const { return counts_.at(index(state)); }
  bool empty() const { return jobs_.empty(); }
  // Of the long texts of all jobs that have not ended.
  std::size_t bytes() const { return bytes_; }
  // Earlier claims of the same job: the server has ended each of them, or would not have given a
  // newer claim.
  std::vector<ClaimKey> earlier_claims(ClaimKey claim) const;
  // The prefetched job that was handed over first, among the jobs that may start: no task of an
  // earlier claim of the same job is left here.
  HeldJob* first_prefetched();

 private:
  bool may_start(const HeldJob& job) const;
  static std::size_t index(HeldJob::State state) { return static_cast<std::size_t>(state); }

  std::map<ClaimKey, HeldJob> jobs_;
  std::set<ClaimKey> left_;
  // In order of arrival; claims that are not prefetched any more linger.
  std::deque<ClaimKey> arrivals_;
  std::array<std::size_t, 4> counts_{};
  std::size_t bytes_ = 0;
};

}  // namespace pulse
