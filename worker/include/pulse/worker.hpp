// Handlers in C++: runs jobs of pg_pulse inside a C++ program.
//
//   pg_pulse::Worker worker({.database = "postgresql:///shop", .handle_signals = true});
//   worker.handle("mail", [](pg_pulse::Job& job) { send_mail(job.payload()); });
//   return worker.run();
//
// Needs C++20 and the standard library. A handler runs on one of the worker's threads. The job is
// completed when the handler returns, fails when it throws, and ends as the Outcome says when it
// returns one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pulse {
class HandlerRun;
}

#if defined(__GNUC__)
#define PG_PULSE_API __attribute__((visibility("default")))
#else
#define PG_PULSE_API
#endif

namespace pg_pulse {

// Why a handler is asked to stop. The handler's outcome then counts only after `shutdown`: success
// and snoozing are reported, anything else interrupts the attempt, and the job is retried.
enum class StopReason {
  none,
  cancelled,    // by cancel_job(): the job fails for good
  timed_out,    // the timeout of the job is over: the job fails, and is retried
  stalled,      // no progress within the job's stall_timeout: likewise
  unreachable,  // the database is, and the job's task asks to be stopped then (on_unreachable)
  lost,         // the claim is: another worker may be running the job by now
  shutdown,     // the worker's grace is over
};

struct Progress {
  std::optional<double> fraction = {};  // from 0 to 1
  std::optional<std::string> message = {};
  std::optional<std::string> stage = {};
  std::optional<std::string> checkpoint = {};  // JSON: the beginning of the next attempt
};

// One claim of a job, for its handler. Copies are cheap and name the same claim; a copy may outlive
// the handler. Every function may be called from any thread.
class PG_PULSE_API Job {
 public:
  explicit Job(std::shared_ptr<pulse::HandlerRun> run) noexcept;

  std::int64_t id() const noexcept;
  // Greater with each claim: an external system that refuses smaller tokens is fenced.
  std::int64_t token() const noexcept;
  const std::string& task() const noexcept;
  const std::string& payload() const noexcept;                    // JSON text
  const std::optional<std::string>& checkpoint() const noexcept;  // JSON text of an earlier attempt
  // How the jobs ended that this job waited for, as far as on record: a JSON array.
  const std::optional<std::string>& parents() const noexcept;
  // The W3C traceparent of the session that added the job: to continue, or to hand on.
  const std::optional<std::string>& traceparent() const noexcept;
  int attempt() const noexcept;  // counts from 1
  int max_attempts() const noexcept;
  int crashes() const noexcept;  // how many attempts died with the worker
  int priority() const noexcept;
  const std::optional<std::string>& queue() const noexcept;
  const std::optional<std::string>& key() const noexcept;
  const std::vector<std::string>& flags() const noexcept;
  const std::optional<std::string>& last_error() const noexcept;
  const std::optional<std::string>& recovered() const noexcept;  // how the last attempt was lost
  const std::string& run_at() const noexcept;                    // ISO 8601
  const std::string& created_at() const noexcept;                // ISO 8601

  // As a value of any type with a static parse(text), like nlohmann::json.
  template <class Json>
  Json payload_as() const {
    return Json::parse(payload());
  }
  template <class Json>
  std::optional<Json> checkpoint_as() const {
    if (!checkpoint()) return std::nullopt;
    return std::optional<Json>(Json::parse(*checkpoint()));
  }

  // Requested on each StopReason. Callbacks registered with the token run on the worker's own
  // thread, which must not be kept: a callback may set a flag or wake a thread, no more.
  std::stop_token stop_token() const noexcept;
  bool stop_requested() const noexcept { return stop_reason() != StopReason::none; }
  StopReason stop_reason() const noexcept;

  // Sent at most once a second, merged; a checkpoint before the outcome in any case. Resets the
  // clock of stall_timeout. Throws std::invalid_argument for a checkpoint that is not JSON or is
  // longer than 64 MiB; a message is cut at 8 kB, a stage at 128 bytes.
  void report(Progress progress) const;

 private:
  std::shared_ptr<pulse::HandlerRun> run_;
};

// How a job ended.
class PG_PULSE_API Outcome {
 public:
  static Outcome success();
  // JSON of at most 64 MiB, stored with the job; anything else is a final failure.
  static Outcome success(std::string result);
  // Retried after the task's backoff, while attempts are left.
  static Outcome failure(std::string error);
  static Outcome failure(std::string error, std::chrono::milliseconds retry_in);
  static Outcome final_failure(std::string error);
  // Of a failure: the payload of the next attempt, in JSON. So a batch that succeeded in part says
  // which part is left: return Outcome::failure("2 of 5 refused").with_payload(rest);
  Outcome with_payload(std::string payload) &&;
  // Again after `delay`; the attempt is given back.
  static Outcome snooze(std::chrono::milliseconds delay,
                        std::optional<std::string> checkpoint = std::nullopt);

 private:
  friend class Worker;
  enum class Kind { success, failure, final_failure, snooze };
  explicit Outcome(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::optional<std::string> text_;  // result, error or checkpoint
  std::optional<std::string> payload_;
  std::optional<std::chrono::milliseconds> delay_;
};

using Handler = std::function<Outcome(Job&)>;
// Answers for each job in order. A job without an answer fails.
using BatchHandler = std::function<std::vector<Outcome>(std::span<Job>)>;

enum class LogLevel { debug, info, warning, error };
enum class LogFormat { text, json };

struct Options {
  // Name, connection string or URI; empty: libpq's environment decides.
  std::string database = {};
  std::string name = {};  // of this worker in views and logs; empty: host and process
  int concurrency = 0;    // threads for handlers; 0: as many as the machine has cores
  bool once = false;      // run until no job is ready
  int prefetch = 500;     // jobs held ahead at most; only as many as the next moments will use
  // Nothing is claimed while the payloads of held jobs have so many bytes.
  std::size_t max_held_bytes = std::size_t{256} << 20U;
  // How long running handlers may take to finish at a stop.
  std::chrono::milliseconds grace{25'000};
  // How long a handler may go on after the request to stop: at most 5 s, and 2 s at a shutdown.
  std::chrono::milliseconds stop_grace{5'000};
  std::optional<std::chrono::milliseconds> heartbeat_interval = {};  // else the server's setting
  // SIGTERM and SIGINT call stop() while run() runs; a second one only five seconds after the
  // first.
  bool handle_signals = false;
  LogLevel log_level = LogLevel::warning;  // `info` tells of each job
  LogFormat log_format = LogFormat::text;
  // Takes lines, on a separate thread; empty: standard error.
  std::function<void(std::string_view line)> log_sink = {};
  // A handler has outlived its stop_grace, so another worker may soon run the same job as well. A
  // thread cannot be ended alone: unless this returns false, the process ends at once, with exit
  // code 75 and without destructors. Called once per job on the worker's own thread, which must not
  // be kept.
  std::function<bool(const Job& job)> on_stubborn = {};
};

class PG_PULSE_API Worker {
 public:
  // Reads libpq's environment. std::invalid_argument for options that cannot be.
  explicit Worker(Options options = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The code that runs the jobs of a task: returns an Outcome, or nothing for success. Only before
  // run(). Several threads call the code at once.
  template <class Code>
  Worker& handle(std::string task, Code code) {
    if constexpr (std::is_void_v<std::invoke_result_t<Code&, Job&>>) {
      return add(std::move(task), [code = std::move(code)](Job& job) mutable {
        code(job);
        return Outcome::success();
      });
    } else {
      return add(std::move(task), Handler(std::move(code)));
    }
  }
  // Takes up to `max_jobs` jobs at once, as many as are there: the worker never waits for more. It
  // claims for each thread as many jobs as the largest batch.
  Worker& handle_batch(std::string task, std::size_t max_jobs, BatchHandler code);

  // Works until stop(). Once only. Returns the exit code of pulse-worker: 0 drained (or, with
  // `once`, nothing is ready), 69 the database refuses for good, 75 forced before all work was done
  // or delivered, 78 settings refused or not granted. Throws only before the work has begun.
  int run();

  // From any thread and from a signal handler, also before run(). The first call drains: no new
  // claims, running handlers may finish within the grace. The second call asks the handlers to
  // stop.
  void stop() noexcept;

 private:
  class Impl;
  Worker& add(std::string task, Handler code);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pg_pulse
