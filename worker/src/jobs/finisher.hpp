// Reports how claims ended, and progress before that.
//
// What is ready when the connection is free travels together, one kind at a time; nothing is held
// back to wait for more. A claim that is sent at that moment takes it along on its own connection.
// An outcome stays here until the server has answered for it:
//   accepted  done
//   busy      another transaction holds the row: asked again shortly
//   stale     the claim was over: refused, counted, logged
// After a lost reply an outcome is sent again; a stale answer then only says that the claim is
// over, not whether we ended it, and is called unknown unless the job shows that we did not.
// Nothing is sent while the heartbeat is not fresh: a beat comes first and may revoke.
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
    std::int64_t released = 0;
    std::int64_t snoozed = 0;
    std::int64_t interrupted = 0;
    std::int64_t stale = 0;
    std::int64_t unknown = 0;
  };

  Finisher(Session& session, Heartbeat& heartbeat, HeldJobs& held, Timers& timers, Log& log);

  // Takes over the end of a held job, which leaves `held` once the server has answered. Of a claim
  // that has ended already, or is not ours any more, nothing is reported.
  void add(Outcome outcome);
  // A held job that its task has completed by itself.
  void note_completed(Outcome outcome);
  // Merged with what was reported before and is not sent yet.
  void report_progress(ClaimKey claim, const TaskProgress& progress);
  // The claim is over: what it had to report is not sent any more. An outcome that may have been
  // accepted already is still asked about.
  void revoke(ClaimKey claim);

  // What could not be sent may go now.
  void look_again() {
    if (!waiting_.empty() || !progress_.empty()) session_.wake();
  }

  // Outcomes that travel in the same round trip as a claim.
  struct WithClaim {
    Call call;
    Commit commit = Commit::together;  // what the other call needs to see of this one
    ReplyHandler take_reply;
  };
  std::optional<WithClaim> take_with_claim();

  bool is_empty() const { return size() == 0; }
  std::size_t size() const { return waiting_.size() + under_way_; }
  const Counters& counters() const { return counters_; }

  // Outcomes are about to be sent: a claim that is ready takes them along now.
  std::function<void()> on_sending;
  // An outcome has its answer.
  std::function<void()> on_settled;
  // The server refused progress because the claim is over.
  std::function<void(ClaimKey)> on_claim_lost;

 private:
  struct Pending {
    Outcome outcome;
    bool was_sent = false;       // with a reply that never came
    bool is_doubtful = false;    // was_sent, and then stale
    bool goes_alone = false;     // its batch was refused as a whole
    bool was_rewritten = false;  // what it said could not be stored
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
  void settle(Pending pending, const std::string& answer);
  void settle_stale(Pending pending);
  void take_refusal(Batch refused, const SqlError& error);
  void ask_about(Pending pending);
  void conclude(const Pending& pending, const char* event, std::int64_t& counter, LogLevel level);
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
  std::set<ClaimKey> reporting_;  // whose progress is under way: their outcomes come later
  ClaimKey last_progress_;
  bool was_progress_last_ = false;
  Counters counters_;
  Duration pause_{};  // grows while the server refuses everything
  Timer retry_;
  Timer progress_retry_;  // the server refuses progress for now
};

}  // namespace pulse
