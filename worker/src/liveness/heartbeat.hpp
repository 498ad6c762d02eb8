// Heartbeat: registers this process, beats for the worker, and hears the server's orders and
// revocations.
//
// The loop that reports completions also sends the beats, so a beat proves that completions can be
// reported. A beat names exactly the jobs held at that moment. A good beat counts from the moment
// of sending: the server cannot have seen it earlier, and its news is at least that old.
//
// Invariants (only the loop's thread reads and writes):
// - `registration_` is set from register_worker's answer until the server calls the worker lost, or
//   until the farewell is answered. Claims are valid only under that worker id.
// - `last_good_` is when the last beat or registration with a good answer was sent, and never moves
//   back.
// - `missed_` only grows: the sum of all times by which beats were overdue.
// - No two lists of jobs fall into one claim: see may_name_jobs().
// - `told_` is what the server knows of `served_`; absent while that is uncertain.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/postgres/repeats.hpp"
#include "base/postgres/session.hpp"
#include "liveness/exit_code.hpp"
#include "liveness/registration.hpp"
#include "liveness/reported_claims.hpp"

namespace pulse {

// What a worker tells when it registers, and again when this has changed.
struct Served {
  std::vector<std::string> tasks;
  std::string info_json;

  bool operator==(const Served&) const = default;
};

struct HeartbeatConfig {
  std::string name;
  std::string info_json;
  std::optional<Duration> interval;  // absent: the server's setting
  bool is_one_of_many = false;       // beats at the same moments as the others of this process
};

class Heartbeat {
 public:
  enum class Order { drain, stop };

  Heartbeat(HeartbeatConfig config, Session& session, Timers& timers, const ReportedClaims& held,
            Log& log);

  // The tasks and the info that the server is to know: the next registration names both, and a
  // registered worker tells the server.
  void serve(std::vector<std::string> tasks);
  void set_info(std::string info_json);

  // Empty before the first registration and between being lost and registering anew.
  const std::optional<Registration>& registration() const { return registration_; }
  // Registered, and attached where attaching is possible: should this process die, the server finds
  // the worker's claims at once. Stays so while the connection comes back.
  bool is_established() const { return registration_ && is_established_; }
  // When the last beat was sent that the server answered well.
  TimePoint last_good() const { return last_good_; }
  // The last good beat is recent enough that the server can have given no claim of this worker to
  // another worker.
  bool is_fresh() const;

  // The next beat is late: perhaps the database cannot be reached.
  bool is_overdue() const;
  // How long beats have been overdue so far, all in all. A job's own limits leave this time out: an
  // outage of the database times out no job.
  std::chrono::nanoseconds missed() const;

  // Asks the server anew which tasks have a handler.
  void ask_for_handlers();
  // A beat is under way that names the jobs held.
  bool is_naming_jobs() const { return is_naming_jobs_; }
  // Beats as soon as the connection is free, also before the scheduled time.
  void beat_now();
  // The server refused another statement because the server takes this worker as lost. One more
  // beat under the old id says that this process lives, so that the loss counts no crash.
  void take_refused(std::int64_t worker_id, const std::string& reason);
  // Says good-bye once; `done` comes with the answer, or at once without a session.
  void deregister(Duration deadline, std::function<void()> done);

  std::function<void()> on_registered;
  std::function<void()> on_established;
  // The tasks that are functions of the database; comes before on_established.
  std::function<void(std::vector<std::string>)> on_handler_tasks;
  std::function<void()> on_good_beat;
  // The jobs of `worker_id` are not this worker's any more: kill the tasks and report nothing.
  std::function<void(std::int64_t worker_id)> on_lost;
  std::function<void(const std::vector<ClaimKey>&)> on_revoked;
  std::function<void(const std::vector<ClaimKey>&)> on_cancelled;
  std::function<void(Order)> on_order;
  // Whether the server's background worker sweeps here, at each good beat.
  std::function<void(bool)> on_background_sweeps;
  // Registering can never work: the settings forbid registering, or the extension is missing.
  std::function<void(ExitCode, const std::string& reason)> on_refused;
  // Whether the worker may register already; where unset, it may.
  std::function<bool()> may_register;
  // Whether a claim is under way whose jobs are not in `held` yet.
  std::function<bool()> has_claim_under_way;
  // When the claim was sent that is under way.
  std::function<std::optional<TimePoint>()> claim_under_way_since;

 private:
  bool send_next();
  void send_return();
  void declare_lost(std::int64_t worker_id, const std::string& reason);
  void send_registration();
  void take_registration(TimePoint sent_at, const Served& named, const Reply& reply);
  bool must_tell_tasks() const;
  void send_tasks();
  void take_told(std::int64_t worker_id, const Served& told, const Reply& reply);
  void send_attachment();
  void send_handlers();
  void take_handlers(const Reply& reply);
  void establish();
  void send_beat();
  TimePoint next_beat_after(TimePoint sent_at) const;
  bool may_name_jobs(bool is_early) const;
  void take_beat(std::int64_t worker_id, TimePoint sent_at, const std::vector<ClaimKey>& claims,
                 const Reply& reply);
  void take_status(const QueryResult::Row& row, const std::vector<ClaimKey>& claims);
  void send_farewell();
  void end_farewell();
  std::chrono::nanoseconds overdue_at(TimePoint time) const;
  void log_failure(const char* statement, const Reply& reply, LogLevel level = LogLevel::warning);
  Duration answer_deadline() const;

  HeartbeatConfig config_;
  Repeats failures_;
  Session& session_;
  Timers& timers_;
  const ReportedClaims& held_;
  Log& log_;

  Served served_;
  std::optional<Served> told_;
  bool has_told_ = false;            // since the registration
  bool is_telling_put_off_ = false;  // until the next good beat
  std::optional<Registration> registration_;
  TimePoint last_good_{};
  TimePoint last_list_{};                 // when the last beat that named jobs was sent
  std::chrono::nanoseconds missed_{};     // up to the last good beat
  std::optional<std::int64_t> returned_;  // a lost id that the server must hear once more
  bool is_registering_ = false;           // the answer of register_worker is under way
  bool needs_attachment_ = false;
  bool needs_handlers_ = false;
  // Attaching or asking for handlers; both are tried again after the next good beat.
  bool is_refused_for_now_ = false;
  bool is_established_ = false;
  bool is_beat_wanted_ = false;  // before the scheduled time
  bool is_naming_jobs_ = false;
  Duration farewell_deadline_{};
  std::function<void()> farewell_done_;
  Timer next_beat_;
  Timer next_registration_;
};

}  // namespace pulse
