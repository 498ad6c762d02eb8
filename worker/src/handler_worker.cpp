// pg_pulse::Worker: a worker whose tasks are the handlers of this program.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "base/log/standard_streams.hpp"
#include "base/loop/signals.hpp"
#include "base/loop/signals_blocked.hpp"
#include "base/loop/stop_requests.hpp"
#include "base/text/json_text.hpp"
#include "base/text/stderr_tail.hpp"
#include "liveness/identity.hpp"
#include "liveness/registration.hpp"
#include "pulse/worker.hpp"
#include "task/handler/tasks.hpp"
#include "worker.hpp"

namespace pg_pulse {
namespace {

constexpr std::size_t kMaxAtOnce = 10'000;

void require(bool is_right, const std::string& message) {
  if (!is_right) throw std::invalid_argument("pg_pulse::Worker: " + message);
}

std::string own_name() { return pulse::read_hostname() + "-" + std::to_string(getpid()); }

// The options with a value for each open option; throws std::invalid_argument for an impossible
// value.
Options completed(Options options) {
  if (options.name.empty()) options.name = own_name();
  if (options.concurrency == 0) {
    options.concurrency = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  require(options.concurrency > 0 && options.concurrency <= pulse::kMaxSlots,
          "concurrency out of range");
  require(options.prefetch >= 0 && options.prefetch <= pulse::kMaxAhead, "prefetch out of range");
  require(options.max_held_bytes > 0, "max_held_bytes is zero");
  require(options.grace.count() >= 0, "grace is negative");
  require(options.stop_grace.count() > 0, "stop_grace is not positive");
  const auto problem = pulse::worker_name_problem(options.name);
  require(!problem, "name: " + problem.value_or(""));
  require(
      !options.heartbeat_interval || *options.heartbeat_interval >= pulse::kMinHeartbeatInterval,
      "heartbeat_interval is shorter than 50 ms");
  return options;
}

pulse::ConnectOptions read_connection(const Options& options) {
  auto read = pulse::ConnectOptions::read(options.database, "pulse-worker " + options.name);
  if (const auto* problem = std::get_if<std::string>(&read))
    require(false, "database: " + *problem);
  return std::get<pulse::ConnectOptions>(std::move(read));
}

std::vector<Job> jobs_of(std::span<const pulse::HandlerRunPtr> runs) {
  std::vector<Job> jobs;
  jobs.reserve(runs.size());
  for (const pulse::HandlerRunPtr& run : runs) jobs.emplace_back(run);
  return jobs;
}

}  // namespace

class __attribute__((visibility("hidden"))) Worker::Impl {
 public:
  explicit Impl(Options options)
      : options_(completed(std::move(options))), connection_(read_connection(options_)) {}

  static pulse::ExecutionEnd end_of(Outcome outcome);
  void add(std::string task, std::size_t max_jobs, pulse::HandlerCode code);
  int run();
  void stop() noexcept { stop_requests_.add(); }

 private:
  pulse::Config config() const;
  std::vector<std::string> tasks() const;
  std::unique_ptr<pulse::Log> make_log() const;
  pulse::HandlerPolicy policy(pulse::Log& log) const;
  int run_loop(pulse::Log& log);

  const Options options_;
  const pulse::ConnectOptions connection_;
  pulse::StopRequests stop_requests_;
  pulse::Handlers handlers_;
  std::size_t largest_batch_ = 1;
  bool has_run_ = false;
};

pulse::ExecutionEnd Worker::Impl::end_of(Outcome outcome) {
  pulse::ExecutionEnd end;
  const bool is_document =
      outcome.kind_ == Outcome::Kind::success || outcome.kind_ == Outcome::Kind::snooze;
  if (is_document && outcome.text_) {
    if (const auto problem = pulse::document_problem(*outcome.text_)) {
      outcome.text_ = "what the handler returned cannot be stored: " + *problem;
      outcome.kind_ = Outcome::Kind::final_failure;
      outcome.delay_.reset();
    }
  }
  switch (outcome.kind_) {
    case Outcome::Kind::success:
      end.kind = pulse::ExecutionEnd::Kind::succeeded;
      end.result = std::move(outcome.text_);
      break;
    case Outcome::Kind::failure:
    case Outcome::Kind::final_failure:
      end.kind = outcome.kind_ == Outcome::Kind::failure
                     ? pulse::ExecutionEnd::Kind::failed
                     : pulse::ExecutionEnd::Kind::failed_for_good;
      end.error = pulse::storable_text(outcome.text_.value_or(""));
      end.reason = "its answer";
      end.again_in = outcome.delay_;
      end.payload = std::move(outcome.payload_);
      break;
    case Outcome::Kind::snooze:
      end.kind = pulse::ExecutionEnd::Kind::snoozed;
      end.checkpoint = std::move(outcome.text_);
      end.again_in = outcome.delay_;
      break;
  }
  return end;
}

void Worker::Impl::add(std::string task, std::size_t max_jobs, pulse::HandlerCode code) {
  if (has_run_) throw std::logic_error("pg_pulse::Worker: it runs already");
  require(!task.empty(), "a task has no name");
  require(max_jobs > 0 && max_jobs <= kMaxAtOnce, "batch of " + task + " out of range");
  require(!handlers_.contains(task), "two handlers for " + task);
  handlers_[std::move(task)] = {max_jobs, std::move(code)};
  largest_batch_ = std::max(largest_batch_, max_jobs);
}

// A job for each thread, and beside these the jobs that the threads can take in batches.
pulse::Config Worker::Impl::config() const {
  pulse::Config config;
  config.name = options_.name;
  config.concurrency = options_.concurrency;
  config.batch_slots = options_.concurrency * static_cast<int>(largest_batch_ - 1);
  config.once = options_.once;
  config.prefetch = options_.prefetch;
  config.tasks_queue = true;
  config.max_held_bytes = options_.max_held_bytes;
  config.grace = options_.grace;
  config.heartbeat_interval = options_.heartbeat_interval;
  return config;
}

std::vector<std::string> Worker::Impl::tasks() const {
  std::vector<std::string> tasks;
  for (const auto& [task, entry] : handlers_) tasks.push_back(task);
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

std::unique_ptr<pulse::Log> Worker::Impl::make_log() const {
  const auto format = static_cast<pulse::LogFormat>(options_.log_format);
  const auto level = static_cast<pulse::LogLevel>(options_.log_level);
  const pulse::SignalsBlocked blocked;
  if (options_.log_sink) return std::make_unique<pulse::Log>(format, level, options_.log_sink);
  return std::make_unique<pulse::Log>(format, level, STDERR_FILENO);
}

pulse::HandlerPolicy Worker::Impl::policy(pulse::Log& log) const {
  pulse::HandlerPolicy policy;
  policy.stop_grace = options_.stop_grace;
  if (options_.on_stubborn) {
    policy.on_stubborn = [this](const pulse::HandlerRunPtr& run) {
      return options_.on_stubborn(Job(run));
    };
  }
  policy.end_process = [&log] {
    log.close();
    std::_Exit(static_cast<int>(pulse::ExitCode::forced));
  };
  return policy;
}

int Worker::Impl::run() {
  if (has_run_) throw std::logic_error("pg_pulse::Worker: it runs only once");
  if (handlers_.empty()) throw std::logic_error("pg_pulse::Worker: it has no handler");
  has_run_ = true;
  const std::unique_ptr<pulse::Log> log = make_log();
  return run_loop(*log);
}

int Worker::Impl::run_loop(pulse::Log& log) {
  const pulse::SystemClock clock;
  pulse::EventLoop loop(clock);
  pulse::HandlerTasks* listener = nullptr;
  const auto outbox = std::make_shared<pulse::HandlerOutbox>(
      [&] { loop.post([&listener] { listener->take_messages(); }); });
  pulse::HandlerPool pool(static_cast<std::size_t>(options_.concurrency), handlers_, outbox);
  pulse::HandlerTasks tasks_of_pool(policy(log), pool, outbox, loop.timers(), log);
  listener = &tasks_of_pool;
  const auto claim = make_connection(loop, connection_);
  const auto finish = make_connection(loop, connection_);
  const auto heartbeat = make_connection(loop, connection_);
  pulse::Worker worker(config(), identity_json(pulse::read_identity(), options_.concurrency),
                       connection_.deadline(), {*claim, *finish, *heartbeat},
                       tasks_of_pool.starter(), loop.timers(), pulse::random_source(), log);
  worker.set_threads_in_use([&tasks_of_pool] { return tasks_of_pool.threads_in_use(); });
  auto exit_code = pulse::ExitCode::drained;
  worker.is_process_gone = pulse::is_process_gone;
  worker.on_finished = [&](pulse::ExitCode code) {
    exit_code = code;
    loop.stop();
  };
  pulse::Signals signals(loop);
  if (options_.handle_signals) {
    for (const int number : {SIGTERM, SIGINT}) {
      signals.on(number, [&worker] { worker.take_signal(); });
    }
  }
  worker.info = [identity = pulse::read_identity()](std::size_t slots, bool is_draining) {
    return identity_json(identity, static_cast<int>(slots), is_draining);
  };
  worker.serve(tasks());
  worker.start();
  const std::function<void()> on_stop = [&] { worker.stop(); };
  const auto listening = stop_requests_.listen(loop, on_stop);
  loop.run();
  outbox->close();
  return static_cast<int>(exit_code);
}

Worker::Worker(Options options) {
  // A file opened below must not get the number of a standard error that the program lacks: the log
  // would be written into the file.
  pulse::open_standard_streams();
  impl_ = std::make_unique<Impl>(std::move(options));
}

Worker::~Worker() = default;

Worker& Worker::add(std::string task, Handler code) {
  impl_->add(std::move(task), 1,
             [code = std::move(code)](std::span<const pulse::HandlerRunPtr> runs) {
               Job job(runs.front());
               std::vector<pulse::ExecutionEnd> ends;
               ends.push_back(Impl::end_of(code(job)));
               return ends;
             });
  return *this;
}

Worker& Worker::handle_batch(std::string task, std::size_t max_jobs, BatchHandler code) {
  impl_->add(std::move(task), max_jobs,
             [code = std::move(code)](std::span<const pulse::HandlerRunPtr> runs) {
               std::vector<Job> jobs = jobs_of(runs);
               std::vector<pulse::ExecutionEnd> ends;
               for (Outcome& outcome : code(jobs)) ends.push_back(Impl::end_of(std::move(outcome)));
               return ends;
             });
  return *this;
}

int Worker::run() { return impl_->run(); }

void Worker::stop() noexcept { impl_->stop(); }

}  // namespace pg_pulse
