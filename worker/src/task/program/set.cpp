#include "task/program/set.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLeastRestartPause = 100ms;
constexpr Duration kMostRestartPause = 5s;
// How long a process outlives a loop that stands still, before the server has told its threshold.
constexpr Duration kFirstIdleLimit = 60s;
constexpr int kPingsInIdleLimit = 4;
// Between SIGTERM and SIGKILL of a process whose worker stands still.
constexpr Duration kSilenceGrace = 200ms;

}  // namespace

ProgramSet::ProgramSet(ProcessCommand command, const ProgramSettings& settings,
                       ProgramCallbacks callbacks)
    : command_(std::move(command)),
      settings_(settings),
      callbacks_(std::move(callbacks)),
      idle_limit_(kFirstIdleLimit),
      backoff_(settings.random, kMostRestartPause),
      advancing_(timers(), [this] { advance(); }),
      restart_(timers(), [this] { start_missing(); }),
      pinging_(timers(), [this] { ping_all(); }) {
  if (settings_.written != nullptr && settings_.written->use == TaskOutputUse::log) {
    logged_.emplace(*settings_.written, WrittenLines::Writer{{}, {}, {}, {}, command_.task});
  }
}

ProgramSet::~ProgramSet() = default;

// --- starts ---

void ProgramSet::start() {
  for (std::size_t i = 0; i < settings_.copies; ++i) {
    if (!start_one()) return;
  }
}

bool ProgramSet::start_one() {
  auto program = std::make_unique<ProgramProcess>(*this);
  const Variables variables =
      settings_.variables != nullptr ? settings_.variables->list() : Variables{};
  const auto failure =
      program->start({.minder_path = settings_.minder_path,
                      .rules = settings_.rules,
                      .silence_grace = kSilenceGrace,
                      .deadline = timers().now() + settings_.start_limit + idle_limit_,
                      .environment = program_environment(settings_.environment, environ, variables),
                      .written = settings_.written,
                      .writer = {{}, {}, {}, {}, command_.task},
                      .channel = LineChannel::socket},
                     settings_.start_limit);
  if (failure) {
    fail_start(*failure);
    return false;
  }
  settings_.log.info("program_started", {{"program", command_.task}});
  programs_.push_back(std::move(program));
  if (!pinging_.is_running()) pinging_.start_in(idle_limit_ / kPingsInIdleLimit);
  return true;
}

// A failure ends the worker at the first start, and a replacement later; else the set tries again.
void ProgramSet::fail_start(const ExecutionEnd& end) {
  if (!is_ready_) {
    return callbacks_.on_failed(command_.task + ": " + end.error, end.is_transient);
  }
  if (to_replace_ > 0) return refuse(end);
  log_fault(command_.task, end.error);
  pause();
}

void ProgramSet::pause() {
  restart_.start_in(std::max(kLeastRestartPause, backoff_.next_delay(Duration::zero())));
}

std::size_t ProgramSet::count_running() const {
  return static_cast<std::size_t>(
      std::count_if(programs_.begin(), programs_.end(), [this](const auto& program) {
        return !program->is_retiring() && program.get() != candidate_;
      }));
}

// A process has ended, or retires because a handler did not stop.
bool ProgramSet::is_short() const {
  return is_ready_ && !is_draining_ && !restart_.is_running() && count_running() < settings_.copies;
}

void ProgramSet::start_missing() {
  if (is_draining_ || !is_ready_) return;
  if (std::exchange(is_wanted_again_, false)) return replace();
  for (std::size_t running = count_running(); running < settings_.copies; ++running) {
    if (!start_one()) return;
  }
}

void ProgramSet::take_hello(ProgramProcess& program) {
  tasks_.clear();
  limits_.clear();
  for (const auto& [task, takes] : program.hello().tasks) {
    tasks_.insert(task);
    if (takes < program.hello().takes) limits_[task] = takes;
  }
  settings_.log.info("program_ready", {{"program", program.name()},
                                       {"slots", static_cast<std::int64_t>(program.hello().takes)},
                                       {"count", static_cast<std::int64_t>(tasks_.size())}});
  if (&program == candidate_) {
    candidate_ = nullptr;
    replace_next();
  }
  is_ready_ = is_ready_ || std::all_of(programs_.begin(), programs_.end(),
                                       [](const auto& each) { return each->has_said_hello(); });
  callbacks_.on_hello();
  advance_soon();
}

// --- replacement ---

void ProgramSet::replace() {
  if (!is_ready_ || is_draining_) return;
  const bool has_old = std::any_of(programs_.begin(), programs_.end(),
                                   [](const auto& each) { return each->is_retiring(); });
  is_wanted_again_ = to_replace_ > 0 || has_old;
  if (is_wanted_again_) return;
  to_replace_ = count_running();
  refusal_.clear();
  // Without a process that runs, the next start has the new code.
  if (to_replace_ == 0) return start_missing();
  if (start_one()) candidate_ = programs_.back().get();
}

// The new process has said hello, so the oldest serving process goes.
void ProgramSet::replace_next() {
  for (const auto& program : programs_) {
    if (!program->is_serving()) continue;
    program->retire(settings_.replace_grace);
    break;
  }
  if (--to_replace_ > 0 && start_one()) candidate_ = programs_.back().get();
}

// The old processes go on. A machine that could not start the new one now says nothing about the
// new code.
void ProgramSet::refuse(const ExecutionEnd& end) {
  candidate_ = nullptr;
  to_replace_ = 0;
  if (end.is_transient) {
    is_wanted_again_ = true;
    log_fault(command_.task, end.error);
    return pause();
  }
  refusal_ = command_.task + ": " + end.error;
  settings_.log.error("program_refused", {{"program", command_.task}, {"reason", end.error}});
}

void ProgramSet::remove(ProgramProcess& program, const ExecutionEnd& end) {
  const bool has_said_hello = program.has_said_hello();
  const bool has_answered = program.has_answered();
  const bool was_candidate = &program == candidate_;
  settings_.log.info("program_ended", {{"program", program.name()}, {"reason", end.error}});
  std::erase_if(programs_, [&](const auto& each) { return each.get() == &program; });
  if (was_candidate) {
    refuse(end);
  } else if (!is_ready_ && !has_said_hello) {
    return callbacks_.on_failed(command_.task + ": " + end.error, end.is_transient);
  } else if (has_answered) {
    backoff_.succeeded();
  } else if (is_short()) {
    pause();
  }
  const bool has_old = std::any_of(programs_.begin(), programs_.end(),
                                   [](const auto& each) { return each->is_retiring(); });
  const bool may_replace = to_replace_ == 0 && !has_old && !restart_.is_running();
  if (is_wanted_again_ && may_replace) replace();
  advance_soon();
  callbacks_.on_ended();
}

// --- jobs ---

std::unique_ptr<Execution> ProgramSet::add(const HeldJob& job, const Registration& registration,
                                           TimePoint alive_as_of, ExecutionCallbacks callbacks) {
  // Before the first job the pings had the pace of the first limit.
  if (idle_limit_ != registration.sweep_threshold) ping_soon();
  idle_limit_ = registration.sweep_threshold;
  kill_allowance_ = registration.kill_allowance();
  auto execution = std::make_unique<ProcessExecution>(*this, job, program_job_line(job.job.input),
                                                      task_silence_limit(job.job, registration),
                                                      alive_as_of, std::move(callbacks));
  Queue& queue = queues_[execution->task()];
  execution->place = queue.insert(queue.end(), execution.get());
  advance_soon();
  return execution;
}

bool ProgramSet::withdraw(ProcessExecution& execution) {
  if (!execution.place) return false;
  queues_[execution.task()].erase(*std::exchange(execution.place, std::nullopt));
  return true;
}

std::size_t ProgramSet::waiting() const {
  std::size_t waiting = 0;
  for (const auto& [task, queue] : queues_) waiting += queue.size();
  return waiting;
}

std::size_t ProgramSet::in_flight() const {
  std::size_t in_flight = 0;
  for (const auto& program : programs_) in_flight += program->in_flight();
  return in_flight;
}

std::size_t ProgramSet::places() const {
  std::size_t places = 0;
  for (const auto& program : programs_) {
    places += program->is_serving() ? program->hello().takes : program->in_flight();
  }
  return places;
}

std::size_t ProgramSet::free_places() const {
  std::size_t free = 0;
  for (const auto& program : programs_) free += program->free_places();
  return free - std::min(free, waiting());
}

std::size_t ProgramSet::free_places(const std::string& task) const {
  std::size_t free = 0;
  for (const auto& program : programs_) free += program->free_places(task);
  const auto queue = queues_.find(task);
  const std::size_t waits = queue == queues_.end() ? 0 : queue->second.size();
  return std::min(free_places(), free - std::min(free, waits));
}

bool ProgramSet::is_limited(const std::string& task) const { return limits_.contains(task); }

void ProgramSet::drain() {
  is_draining_ = true;
  restart_.stop();
  advance_soon();
}

void ProgramSet::advance_soon() {
  if (!is_advancing_) advancing_.start_soon();
}

// Once in an iteration of the loop, so that lines for one process are written together.
void ProgramSet::advance() {
  is_advancing_ = true;
  for (const auto& program : programs_) program->deliver();
  hand_out();
  for (const auto& program : programs_) {
    if (is_draining_ && waiting() == 0) program->leave();
    program->flush();
  }
  is_advancing_ = false;
  if (is_short()) restart_.start_soon();
  if (free_places() > std::exchange(last_places_, free_places())) callbacks_.on_more_places();
}

void ProgramSet::hand_out() {
  while (callbacks_.may_begin()) {
    const auto [queue, program] = next_job();
    if (program == nullptr) return;
    ProcessExecution& execution = *queue->front();
    withdraw(execution);
    program->give(execution);
  }
}

// Of the jobs with a free process the job that has waited for longest.
std::pair<ProgramSet::Queue*, ProgramProcess*> ProgramSet::next_job() {
  std::pair<Queue*, ProgramProcess*> next{};
  for (auto& [task, queue] : queues_) {
    if (queue.empty()) continue;
    const bool is_older =
        next.first == nullptr || queue.front()->arrived_at() < next.first->front()->arrived_at();
    ProgramProcess* program = is_older ? free_program(task) : nullptr;
    if (program != nullptr) next = {&queue, program};
  }
  return next;
}

ProgramProcess* ProgramSet::free_program(const std::string& task) {
  ProgramProcess* best = nullptr;
  for (const auto& program : programs_) {
    if (program->free_places(task) == 0) continue;
    if (best == nullptr || program->in_flight() < best->in_flight()) best = program.get();
  }
  return best;
}

void ProgramSet::ping_all() {
  for (const auto& program : programs_) program->ping();
  if (!programs_.empty()) pinging_.start_in(idle_limit_ / kPingsInIdleLimit);
}

// --- log ---

void ProgramSet::log_fault(const std::string& program, const std::string& reason) {
  settings_.log.warning("program_fault", {{"program", program}, {"reason", reason}});
}

void ProgramSet::log_dropped(const std::string& program, const std::string& reason,
                             std::int64_t count) {
  settings_.log.warning("lines_dropped",
                        {{"program", program}, {"reason", reason}, {"count", count}});
}

void ProgramSet::log_text(const ProcessExecution& execution, const std::string& program,
                          const LoggedText& logged) {
  if (!logged_) return;
  logged_->tell(logged.level, logged.text,
                {execution.task(), execution.job_id(), execution.attempt(), {}, program});
}

}  // namespace pulse
