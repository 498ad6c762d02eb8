// Tasks that are run by programs: --program. See set.hpp and docs/programs.md.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/task_queue.hpp"
#include "task/program/set.hpp"

namespace pulse {

class ProgramTasks final : public TaskQueue {
 public:
  // `shares_slots`: a job of a program takes one of the worker's slots. Else programs have slots of
  // their own.
  ProgramTasks(const std::vector<ProcessCommand>& commands, const ProgramSettings& settings,
               bool shares_slots);
  ~ProgramTasks() override;

  // Starts all programs. on_ready comes after the hello of each, or else on_failed.
  void start();
  bool empty() const { return sets_.empty(); }
  std::vector<std::string> names() const;
  // New processes take the place of the present ones, for each program by itself.
  void replace();
  // Why new code could not take the place of old code; empty after a success.
  std::string refusal() const;
  // Calls once no process is left, which takes ten seconds at most after drain().
  void when_gone(std::function<void()> then);
  // As StartExecution, of a job that takes() accepts. Must outlive the started executions.
  ExecutionStart start(const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                       ExecutionCallbacks callbacks);

  bool takes(const HeldJob& job) const override;
  std::size_t busy() const override { return shares_slots_ ? in_flight() : 0; }
  std::size_t reserved() const override { return 0; }
  std::size_t waiting() const override { return 0; }
  std::size_t extra() const override { return 0; }
  void slot_freed() override;
  void drain() override;
  bool has_own_slots() const override { return !shares_slots_; }
  std::size_t own_slots() const override;
  std::size_t own_slots_in_use() const override;
  std::vector<TaskShare> shares() const override;

  // The tasks of executables and of --process.
  std::function<std::vector<std::string>()> served_elsewhere;
  std::function<void()> on_ready;
  std::function<void(const std::string& reason, bool is_transient)> on_failed;
  // The tasks of a program have changed.
  std::function<void()> on_tasks_changed;

 private:
  ProgramSet* set_of(const std::string& task) const;
  std::string refusal_of(std::size_t number, const Hello& hello) const;
  void take_hello();
  void check_gone();
  std::size_t in_flight() const { return sum(&ProgramSet::in_flight); }
  std::size_t sum(std::size_t (ProgramSet::*count)() const) const;

  const bool shares_slots_;
  bool is_ready_ = false;
  std::function<void()> then_;       // see when_gone()
  std::vector<std::string> served_;  // at the last hello
  std::vector<std::unique_ptr<ProgramSet>> sets_;
};

}  // namespace pulse
