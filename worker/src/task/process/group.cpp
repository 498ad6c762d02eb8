#include "task/process/group.hpp"

#include <algorithm>
#include <utility>

#include "task/executable/environment.hpp"
#include "task/process/line.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMinPause = 100ms;
constexpr Duration kMaxStartPause = 5s;
constexpr int kPingsInLimit = 4;
// In one iteration of the loop, because each waits for an exec.
constexpr int kMaxStarts = 2;

}  // namespace

ProcessGroup::ProcessGroup(ProcessCommand command, const ProcessSettings& settings,
                           ProcessSlots slots, std::function<void()> on_more_extra)
    : command_(std::move(command)),
      settings_(settings),
      slots_(std::move(slots)),
      on_more_extra_(std::move(on_more_extra)),
      backoff_(settings.random, kMaxStartPause),
      advancing_(timers(), [this] { advance(); }),
      restart_(timers(), [this] { advance(); }),
      pinging_(timers(), [this] { ping_all(); }) {}

ProcessGroup::~ProcessGroup() = default;

std::unique_ptr<Execution> ProcessGroup::add(const HeldJob& job, const Registration& registration,
                                             TimePoint alive_as_of, ExecutionCallbacks callbacks) {
  idle_limit_ = registration.sweep_threshold;
  ping_pause_ = registration.silence_limit() / kPingsInLimit;
  kill_allowance_ = registration.kill_allowance();
  std::string line;
  append_job_line(line, job.job.input);
  auto execution = std::make_unique<ProcessExecution>(*this, job, std::move(line),
                                                      task_silence_limit(job.job, registration),
                                                      alive_as_of, std::move(callbacks));
  execution->place = queue_.insert(queue_.end(), execution.get());
  advance_soon();
  return execution;
}

bool ProcessGroup::withdraw(ProcessExecution& execution) {
  if (!execution.place) return false;
  queue_.erase(*std::exchange(execution.place, std::nullopt));
  return true;
}

std::size_t ProcessGroup::busy() const {
  return static_cast<std::size_t>(std::count_if(
      members_.begin(), members_.end(), [](const auto& member) { return member->is_busy(); }));
}

// A group with a queue and no busy process gets the next slot.
std::size_t ProcessGroup::reserved() const {
  return queue_.empty() || restart_.is_running() || busy() > 0 ? 0 : 1;
}

// Grows with the jobs that the processes have in hand, so that the worker claims nothing for idle
// processes.
std::size_t ProcessGroup::extra() const {
  std::size_t extra = 0;
  for (const auto& member : members_) {
    extra += std::min(member->takes() - 1, 2 * member->in_flight());
  }
  return extra;
}

void ProcessGroup::drain() {
  is_draining_ = true;
  advance_soon();
}

void ProcessGroup::advance_soon() {
  if (!is_advancing_) advancing_.start_soon();
}

// Once in an iteration of the loop, so that lines for one process are written together.
void ProcessGroup::advance() {
  is_advancing_ = true;
  for (const auto& member : members_) member->deliver();
  hand_out();
  for (const auto& member : members_) {
    member->flush();
    if (!member->is_busy()) member->rest(is_draining_);
  }
  is_advancing_ = false;
  if (starts_ == kMaxStarts) advance_soon();
  if (extra() > std::exchange(last_extra_, extra())) on_more_extra_();
}

void ProcessGroup::hand_out() {
  starts_ = 0;
  while (!queue_.empty()) {
    ProcessExecution& execution = *queue_.front();
    if (must_wait(execution)) return;
    ProcessMember* member = free_member(execution);
    if (member == nullptr) member = start_member();
    // A start that fails has ended the first job, and makes the next wait.
    if (member == nullptr) return;
    withdraw(execution);
    member->give(execution);
  }
}

// A process that always has a job in hand would keep a slot from the other tasks for ever.
bool ProcessGroup::must_wait(const ProcessExecution& execution) const {
  const auto since = slots_.slot_awaited_since();
  return busy() > 0 && since && *since < execution.arrived_at();
}

ProcessMember* ProcessGroup::free_member(const ProcessExecution& execution) {
  ProcessMember* best = nullptr;
  const bool may_begin = slots_.has_free_slot();
  for (const auto& member : members_) {
    if (!member->accepts(execution) || (!member->is_busy() && !may_begin)) continue;
    if (best == nullptr || member->in_flight() < best->in_flight()) best = member.get();
  }
  return best;
}

ProcessMember* ProcessGroup::start_member() {
  if (restart_.is_running() || !slots_.has_free_slot() || starts_ == kMaxStarts) return nullptr;
  ++starts_;
  ProcessExecution& execution = *queue_.front();
  auto member = std::make_unique<ProcessMember>(*this);
  const auto* variables = settings_.variables;
  const auto failure = member->start(
      {.minder_path = settings_.minder_path,
       .rules = settings_.rules,
       .silence_grace = kill_allowance_,
       .deadline = execution.deadline(),
       .environment = process_environment(command_.task, environ,
                                          variables != nullptr ? variables->list() : Variables{}),
       .written = settings_.written,
       .writer = {command_.task, {}, {}}});
  if (!failure) {
    settings_.log.info("process_started", {{"task", command_.task}});
    members_.push_back(std::move(member));
    if (!pinging_.is_running()) pinging_.start_in(ping_pause_);
    return members_.back().get();
  }
  log_fault(failure->error);
  pause();
  withdraw(execution);
  execution.end_with(*failure);
  execution.deliver(std::nullopt);
  return nullptr;
}

void ProcessGroup::pause() {
  restart_.start_in(std::max(kMinPause, backoff_.next_delay(Duration::zero())));
}

void ProcessGroup::remove(ProcessMember& member, const ExecutionEnd& end) {
  if (member.has_answered()) {
    backoff_.succeeded();
  } else if (!member.was_closed()) {
    pause();
  }
  std::string reason = end.signal != 0 ? "signal " + std::to_string(end.signal)
                                       : "exit code " + std::to_string(end.exit_code);
  if (end.kind == ExecutionEnd::Kind::not_started) reason = end.error;
  if (end.kind == ExecutionEnd::Kind::minder_lost) reason = "minder lost";
  settings_.log.info("process_ended", {{"task", command_.task}, {"reason", reason}});
  std::erase_if(members_, [&](const auto& each) { return each.get() == &member; });
  advance_soon();
}

void ProcessGroup::ping_all() {
  for (const auto& member : members_) member->ping();
  if (!members_.empty()) pinging_.start_in(ping_pause_);
}

void ProcessGroup::log_fault(const std::string& reason) {
  settings_.log.warning("process_fault", {{"task", command_.task}, {"reason", reason}});
}

void ProcessGroup::log_dropped(const std::string& reason, std::int64_t count) {
  settings_.log.warning("lines_dropped",
                        {{"task", command_.task}, {"reason", reason}, {"count", count}});
}

}  // namespace pulse
