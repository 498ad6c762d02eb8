#include "task/handler/tasks.hpp"

#include <algorithm>
#include <utility>

namespace pulse {

class HandlerExecution final : public Execution {
 public:
  HandlerExecution(HandlerTasks& owner, HandlerRunPtr run, Duration progress_interval,
                   ExecutionCallbacks callbacks)
      : owner_(owner),
        run_(std::move(run)),
        progress_interval_(progress_interval),
        callbacks_(std::move(callbacks)),
        next_progress_(owner.timers_, [this] { report_progress(); }),
        patience_(owner.timers_, [this] { give_up(); }) {
    run_->execution = this;
  }
  ~HandlerExecution() override { run_->execution = nullptr; }

  // The loop that beats is in the process that runs the handler, so there is no minder to tell.
  void ping(TimePoint /*alive_as_of*/) override {}
  void explain(EndReason reason) override { reason_ = reason; }

  void terminate(Duration grace) override {
    run_->request_stop(reason_);
    if (owner_.pool_.withdraw(run_)) {
      owner_.outbox_->add({{run_, withdrawn_end()}});
      return;
    }
    const Duration max_grace = owner_.policy_.stop_grace;
    const Duration allowed = grace == Duration::zero() ? max_grace : std::min(grace, max_grace);
    const TimePoint limit = owner_.timers_.now() + allowed;
    if (has_given_up_) return;
    if (!patience_.is_running() || limit < patience_.due()) patience_.start_at(limit);
  }

  bool take_back() override { return owner_.pool_.withdraw(run_); }

  void take_message(HandlerOutbox::Message& message) {
    if (!message.end) return report_progress();
    const TaskProgress rest = run_->take_progress();
    if (!rest.empty()) callbacks_.on_progress(rest);
    // The callback destroys this object.
    const auto on_end = std::move(callbacks_.on_end);
    on_end(*message.end);
  }

 private:
  void give_up() {
    has_given_up_ = true;
    owner_.give_up(run_);
  }

  // Now, or when the interval since the last report is over.
  void report_progress() {
    const TimePoint now = owner_.timers_.now();
    if (now < not_before_) {
      if (!next_progress_.is_running()) next_progress_.start_at(not_before_);
      return;
    }
    const TaskProgress progress = run_->take_progress();
    not_before_ = now + progress_interval_;
    if (!progress.empty()) callbacks_.on_progress(progress);
    run_->listen_again();
  }

  HandlerTasks& owner_;
  const HandlerRunPtr run_;
  const Duration progress_interval_;
  ExecutionCallbacks callbacks_;
  EndReason reason_ = EndReason::none;
  bool has_given_up_ = false;
  TimePoint not_before_{};
  Timer next_progress_;
  Timer patience_;
};

HandlerTasks::HandlerTasks(HandlerPolicy policy, HandlerPool& pool,
                           std::shared_ptr<HandlerOutbox> outbox, Timers& timers, Log& log)
    : policy_(std::move(policy)),
      pool_(pool),
      outbox_(std::move(outbox)),
      timers_(timers),
      log_(log),
      handing_over_(timers, [this] { pool_.add(std::exchange(starting_, {})); }) {}

StartExecution HandlerTasks::starter() {
  return [this](const HeldJob& job, const Registration&, TimePoint, ExecutionCallbacks callbacks) {
    return start(job, std::move(callbacks));
  };
}

ExecutionStart HandlerTasks::start(const HeldJob& job, ExecutionCallbacks callbacks) {
  const TaskInput& input = job.job.input;
  if (!pool_.has(input.identifier)) {
    return {nullptr, false, "this worker has no handler for " + input.identifier};
  }
  auto run = std::make_shared<HandlerRun>(input, outbox_);
  auto execution = std::make_unique<HandlerExecution>(
      *this, run, progress_interval(job.job.stall_timeout), std::move(callbacks));
  starting_.push_back(std::move(run));
  handing_over_.start_soon();
  return {std::move(execution), false, {}};
}

void HandlerTasks::take_messages() {
  for (HandlerOutbox::Message& message : outbox_->take()) {
    if (message.run->execution != nullptr) message.run->execution->take_message(message);
  }
}

void HandlerTasks::give_up(const HandlerRunPtr& run) {
  if (!pool_.is_running(run)) return;  // the end of the run is on the way
  log_.error("stubborn", {{"job", run->input().job_id},
                          {"task", run->input().identifier},
                          {"worker", run->input().worker_id},
                          {"reason", reason_name(run->stop_reason())}});
  if (policy_.on_stubborn && !policy_.on_stubborn(run)) return;
  policy_.end_process();
}

}  // namespace pulse
