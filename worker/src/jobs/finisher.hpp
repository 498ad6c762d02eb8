// Outcomes: reports to the server how claims ended, and progress before the end.
//
// Reports that are ready when the connection is free travel together, one kind at a time; the
// finisher holds nothing back to wait for more. A claim that is sent at that moment takes outcomes
// along on its connection. An outcome stays here until the server has answered:
//   accepted  done
//   busy      another transaction holds the row: asked again shortly
//   stale     the claim was over: refused, counted, logged
// After a lost reply the finisher sends an outcome again; a stale answer then only says that the
// claim is over, not whether this worker ended it. The outcome is called unknown unless the job
// shows that this worker did not. Nothing is sent while the heartbeat is not fresh: a beat comes
// first and may revoke.
//
// Invariants (only the loop's thread reads and writes):
// - An outcome is in `waiting_` or counted by `under_way_`, never both, from add() to the answer.
//   Then the job leaves `held`.
// - A claim's outcome is sent only when `progress_` and `reporting_` do not name the claim:
//   progress arrives before the end.
// - One statement holds no job id twice, because the server answers by job id.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "jobs/execution_report.hpp"
#include "jobs/held_jobs.hpp"
#include "jobs/outcome.hpp"
#include "liveness/heartbeat.hpp"

namespace pulse {

class Finisher {
 public:
  struct Counters {
    std::int64_t completed = 0;
    std::int64_t failed = 0;
    std::int64_t cancelled = 0;
    std::int64_t released = 0;
    std::int64_t snoozed = 0;
    std::int64_t interrupted = 0;
    std::int64_t stale = 0;
    std::int64_t unknown = 0;
  };

  Finisher(Session& session, Heartbeat& heartbeat, HeldJobs& held, Timers& timers, Log& log);

  // Takes over the end of a held job; the job leaves `held` once the server has answered. Reports
  // nothing of a claim that has ended already, or that is not this worker's any more.
  void add(Outcome outcome);
  // Counts and logs a held job that the task has completed by itself.
  void note_completed(Outcome outcome);
  // Merges `progress` with earlier progress of the claim that is not sent yet.
  void report_progress(ClaimKey claim, const TaskProgress& progress);
  // The claim is over: drops its reports that were not sent. The finisher still asks about an
  // outcome that the server may have accepted already.
  void revoke(ClaimKey claim);

  // Reports that could not be sent may go now.
  void wake_for_reports() {
    if (!waiting_.empty() || !progress_.empty()) session_.wake();
  }

  // Outcomes that travel in the same round trip as a claim.
  struct WithClaim {
    Call call;
    Commit commit = Commit::together;  // how the claim sees the effects of this call
    ReplyHandler take_reply;
  };
  std::optional<WithClaim> take_with_claim();

  bool is_empty() const { return size() == 0; }
  std::size_t size() const { return waiting_.size() + under_way_; }
  const Counters& counters() const { return counters_; }

  // Outcomes are about to be sent: a claim that is ready takes them along now.
  std::function<void()> on_sending;
  // The server has answered an outcome.
  std::function<void()> on_answered;
  // The server refused progress because the claim is over.
  std::function<void(ClaimKey)> on_claim_lost;

 private:
  struct Pending {
    Outcome outcome;
    bool was_sent = false;       // with a reply that never came
    bool is_doubtful = false;    // was_sent, and then stale
    bool goes_alone = false;     // the server refused the batch of this outcome as a whole
    bool was_rewritten = false;  // a text of the outcome could not be stored
    Duration busy_pause{};
    TimePoint not_before{};
  };

  using Batch = std::vector<Pending>;

  bool send_next();
  std::vector<ClaimKey> next_progress() const;
  bool send_progress();
  void take_progress_reply(ClaimKey claim, TaskProgress progress, const Reply& reply);
  bool send_outcomes();
  template <class MayGo>
  Batch take_batch(MayGo may_go);
  static bool is_single(const Pending& pending);
  static bool travel_together(const Pending& one, const Pending& other);
  ReplyHandler send_off(Batch batch, Call& call);
  void take_reply(Batch batch, const Reply& reply);
  void take_answers(Batch batch, const QueryResult& rows);
  void put_back(Batch batch);
  void put_back(ClaimKey claim, TaskProgress progress);
  Duration longer_pause();
  void answer_pending(Pending pending, const std::string& answer);
  void answer_stale(Pending pending);
  void take_refusal(Batch refused, const SqlError& error);
  void ask_about(Pending pending);
  void take_whereabouts(const Pending& asked, bool is_live);
  void conclude(const Outcome& outcome, const char* event, std::int64_t& counter, LogLevel level);
  void wait_again(Pending pending, Duration delay);
  void arm_retry();

  Session& session_;
  Heartbeat& heartbeat_;
  HeldJobs& held_;
  Timers& timers_;
  Log& log_;

  std::deque<Pending> waiting_;
  std::size_t under_way_ = 0;  // outcomes in statements that run
  std::map<ClaimKey, TaskProgress> progress_;
  // Claims whose progress is under way: the outcomes of those claims come later.
  std::set<ClaimKey> reporting_;
  ClaimKey last_progress_;
  bool was_progress_last_ = false;
  Counters counters_;
  Duration pause_{};  // grows while the server refuses everything
  Timer retry_;
  Timer progress_retry_;  // the server refuses progress for now
};

}  // namespace pulse
