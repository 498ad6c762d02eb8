// Claims: decides when and how many jobs to claim, and waits in the server while there are none.
//
// One connection carries one thing at a time: a claim; if the claim gave nothing for a free slot,
// wait_for_job; then the next claim. A wait is a top-level statement of its own. Slots that come
// free during a wait need no interruption: there is nothing to claim. After a lost reply held()
// comes first: the claimer releases each job that the server has given to this worker and that
// never arrived here. A wait would keep one of a pooler's few sessions from all its other clients,
// and the only connection from outcomes. Where a wait is not allowed, the worker therefore claims
// again after each poll interval. Outcomes that are ready when a claim is sent travel with the
// claim. Both share a transaction where sharing saves a commit and hides nothing from the claim.
//
// Invariants (only the loop's thread reads and writes):
// - At most one statement of the claimer is under way. `activity_` says which; sending sets it, and
//   the reply resets it to none.
// - `doubt_since_` is set from a claim's lost reply to the answer of held(), or until the server
//   calls the worker lost. No claim is sent meanwhile.
// - A claim is sent only by an established worker whose heartbeat is fresh and that is not
//   stopping.
// - A job that arrives after stop(), or under an earlier worker id, is released at once.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/postgres/sqlstate.hpp"
#include "claim/demand.hpp"
#include "claim/lost_claim.hpp"
#include "claim/share_rota.hpp"
#include "jobs/finisher.hpp"
#include "liveness/heartbeat.hpp"

namespace pulse {

// A cancellation needs a second connection, which a busy server accepts by then.
inline constexpr Duration kLateCancellation = std::chrono::seconds(5);

struct ClaimerConfig {
  std::string worker_name;
  std::string database;         // its name; see TaskInput
  std::size_t concurrency = 1;  // jobs that can start at once
  // jobs that may lie ready beside `concurrency`, for tasks that take several
  std::size_t batch_slots = 0;
  bool once = false;                 // never wait: report when nothing is ready
  std::optional<int> prefetch = {};  // at most so many held ahead; absent: a few per slot
  std::size_t max_held_bytes = 0;    // of payloads and other long texts of held jobs
  bool is_one_of_many = false;       // waits end at the same moments as the others of this process
};

class Claimer {
 public:
  Claimer(ClaimerConfig config, Session& session, Heartbeat& heartbeat, HeldJobs& held,
          Finisher& finisher, Timers& timers, Log& log);

  // A slot is free or a job has ended: decides anew whether to claim.
  void reconsider();
  // Claims now if a claim is due and may be sent.
  void claim_if_due();
  // The connection is needed for something else: a wait is cancelled.
  void share() { cancel_wait(); }
  // Sends no claim before `pause` has passed: the machine cannot start tasks now.
  void hold_off(Duration pause, const std::string& reason);
  // Sends no new claim, cancels a wait, and releases prefetched jobs, also the jobs of a claim that
  // is still under way.
  void stop();
  // Claims `tasks` from now on, instead of the tasks that this worker was registered with.
  void serve(std::vector<std::string> tasks);

  // No statement is under way that could bring a job, and the jobs of a lost reply are known,
  // unless the answer about lost jobs takes too long.
  bool is_quiet() const {
    const bool is_asking = doubt_since_ && leaving_.is_running();
    return activity_ != Activity::claiming && activity_ != Activity::waiting && !is_asking;
  }
  // When the claim was sent that may have brought jobs which are not in `held` yet. Counts until
  // the claim's answer, or, after a lost reply, until the answer of held(). Where held() cannot be
  // asked, the claim counts for as long as a worker that cannot beat trusts claims.
  std::optional<TimePoint> under_way_since() const {
    if (activity_ == Activity::claiming) return sent_at_;
    const auto& registration = heartbeat_.registration();
    const bool counts = activity_ == Activity::checking || !doubt_since_ || !registration ||
                        timers_.now() < *doubt_since_ + registration->silence_limit();
    return counts ? doubt_since_ : std::nullopt;
  }
  bool has_claim_under_way() const { return activity_ == Activity::claiming || doubt_since_; }

  // Has work by the last answer, and could send a claim now.
  bool wants_jobs() const {
    return session_.is_free() && heartbeat_.is_established() && heartbeat_.is_fresh() &&
           !holding_off_.is_running() && !doubt_since_ && !is_stopping_ && !found_nothing_;
  }
  // A slot may be free that another database had.
  void claim_or_wait() { session_.wake(); }
  // Asks once more whether a job is ready, with `once`.
  void ask_again() {
    found_nothing_ = false;
    session_.wake();
  }

  void job_took(std::chrono::nanoseconds duration) { prefetch_.job_took(duration); }

  // The claimer has added jobs to `held`, as prefetched.
  std::function<void()> on_claimed;
  // The server has given a job anew that this worker holds already: the earlier claim is over.
  std::function<void(ClaimKey)> on_superseded;
  // With `once`: nothing is ready and nothing is held.
  std::function<void()> on_exhausted;
  // With `once`: claims are refused until an operator removes the reason.
  std::function<void(const std::string& reason)> on_refused;
  // Whether a running job has not begun after all, and never will: then the job can be released.
  std::function<bool(ClaimKey)> take_back;
  // Slots that are taken, or that a started job waits for; where unset, each held job has a slot.
  std::function<std::size_t()> slots_in_use;
  // Jobs that can start at once, where the number changes; where unset, as configured.
  std::function<std::size_t()> slots;
  // Where tasks do not share all slots.
  std::function<std::vector<TaskShare>()> shares;
  // What claims for other databases have of the slots; where unset, nothing.
  struct Elsewhere {
    std::size_t running = 0;  // jobs that have a slot
    std::size_t held = 0;     // jobs without an end, and promised jobs
  };
  std::function<Elsewhere()> elsewhere;
  // Bytes of `max_held_bytes` that a claim leaves alone; where unset, the bytes of the held jobs.
  std::function<std::size_t()> bytes_taken;
  // What of a demand this database may claim; where unset, all.
  std::function<Demand(const Demand&)> part_of;
  // A claim is sent; the claim has ended with so many jobs, before the jobs are taken up; the
  // claimer cannot use what it may claim.
  std::function<void(const ShareRota::Terms&)> on_asking;
  std::function<void(std::size_t jobs)> on_answered;
  std::function<void()> on_passed;
  // Jobs beyond one for each slot that could be run now, if such jobs may wait.
  std::function<std::size_t()> extra_jobs;
  // Whether this connection alone has to carry the reports of the held jobs.
  std::function<bool()> must_share;
  // When the next statement of another part is due that may need this connection.
  std::function<std::optional<TimePoint>()> next_errand;
  // Stopped, and now quiet.
  std::function<void()> on_quiet;

 private:
  enum class Activity { none, claiming, waiting, checking };

  bool send_next();
  bool may_claim();
  bool may_wait() const { return !session_.is_pooled() && !(must_share && must_share()); }
  // A claimer that shares slots waits also without a free slot: else the claimer would not hear of
  // work, and the pool would promise it no slot.
  bool is_wait_due(const Demand& wanted) const {
    return found_nothing_ && (wanted.is_awaited || part_of);
  }
  Demand whole_demand() const;
  ShareRota::Terms terms() const;
  std::size_t taken_bytes() const { return bytes_taken ? bytes_taken() : held_.bytes(); }
  bool has_more_shares() const { return shares && rota_.has_more(shares()); }
  void send_claim(const ShareRota::Terms& terms);
  void take_claim(const ShareRota::Terms& terms, std::int64_t worker_id, TimePoint sent_at,
                  bool held_nothing, Reply& reply);
  void take_jobs(QueryResult& rows, std::int64_t worker_id, TimePoint sent_at);
  bool take_up(Job job, std::int64_t worker_id, TimePoint sent_at);
  bool send_wait();
  void take_wait(std::int64_t worker_id, TimePoint sent_at, const Reply& reply);
  void send_check();
  void take_check(std::int64_t worker_id, const std::vector<ClaimKey>& known, const Reply& reply);
  void take_refusal(const char* statement, std::int64_t worker_id, const SqlError& error);
  void cancel_wait() {
    if (activity_ != Activity::waiting) return;
    session_.cancel();
    cancelled_at_ = timers_.now();
  }
  // A wait may have ended before the cancellation came; the cancellation then ends the next call.
  bool is_late_cancellation(const SqlError& error) {
    if (error.sqlstate != sqlstate::kQueryCanceled || !cancelled_at_) return false;
    return timers_.now() - *std::exchange(cancelled_at_, std::nullopt) < kLateCancellation;
  }
  void stop_waiting();
  void release_overdue();
  std::vector<ClaimKey> waiting_jobs() const;
  bool may_go_back(ClaimKey claim) const {
    return held_.find(claim)->state == HeldJob::State::prefetched || take_back(claim);
  }
  void skip(const std::string& reason);
  void become_quiet() {
    if (is_stopping_ && is_quiet() && on_quiet) on_quiet();
  }

  const ClaimerConfig config_;
  Session& session_;
  Heartbeat& heartbeat_;
  HeldJobs& held_;
  Finisher& finisher_;
  Timers& timers_;
  Log& log_;

  Prefetch prefetch_;
  Patience patience_;
  ByteBound bound_;
  ShareRota rota_;
  Activity activity_ = Activity::none;
  std::optional<std::vector<std::string>> tasks_;
  bool is_stopping_ = false;
  std::optional<TimePoint> doubt_since_;   // when the claim was sent whose reply was lost
  std::optional<TimePoint> cancelled_at_;  // of a wait, while no late cancellation has come
  LostClaim lost_;
  bool found_nothing_ = false;    // wait before the next claim
  bool was_for_slots_ = false;    // the last claim, or a part of it
  bool has_no_prefetch_ = false;  // nothing to prefetch: ask again when a job has ended
  bool was_woken_ = false;        // by a wait that ended early, while something is held
  int quick_waits_ = 0;           // in a row that ended at once and for nothing
  Duration pause_{};              // grows while the server refuses
  TimePoint sent_at_{};           // the statement that is under way
  std::string last_skip_;         // why claims are skipped, so that the log names each reason once
  Timer holding_off_;
  Timer next_poll_;  // where no wait is allowed
  Timer prefetch_limit_;
  Timer leaving_;
};

}  // namespace pulse
